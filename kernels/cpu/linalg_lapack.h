// LAPACK's routines under one name for float and double, on the calling thread. Matrices are
// column-major with leading dimension `ld`; every return value is LAPACK's `info`. Work space is
// taken inside; kNoMemory when there is none.
#pragma once

#include <cstdint>

namespace gradwire::cpu::lapack {

inline constexpr int kNoMemory = -1000;

// P L U in place; pivots count from 1.
int getrf(int m, int n, float* a, int ld, int* pivots);
int getrf(int m, int n, double* a, int ld, int* pivots);
// Solves op(A) X = B in place of B, from getrf's factors; trans is 'N' or 'T'.
int getrs(char trans, int n, int columns, const float* lu, int ld, const int* pivots, float* b,
          int ld_b);
int getrs(char trans, int n, int columns, const double* lu, int ld, const int* pivots, double* b,
          int ld_b);
// The Cholesky factor in the triangle `uplo` ('L' or 'U').
int potrf(char uplo, int n, float* a, int ld);
int potrf(char uplo, int n, double* a, int ld);
// Eigenvalues of a symmetric matrix, ascending, and with `vectors` its eigenvectors in place of a.
int syevd(bool vectors, char uplo, int n, float* a, int ld, float* values);
int syevd(bool vectors, char uplo, int n, double* a, int ld, double* values);
// The singular value decomposition; job is 'N', 'S' (reduced) or 'A' (full). Overwrites a.
int gesdd(char job, int m, int n, float* a, int ld, float* s, float* u, int ld_u, float* vt,
          int ld_vt);
int gesdd(char job, int m, int n, double* a, int ld, double* s, double* u, int ld_u, double* vt,
          int ld_vt);
// Householder QR in place, and the first `columns` columns of Q from it.
int geqrf(int m, int n, float* a, int ld, float* tau);
int geqrf(int m, int n, double* a, int ld, double* tau);
int orgqr(int m, int columns, int reflectors, float* a, int ld, const float* tau);
int orgqr(int m, int columns, int reflectors, double* a, int ld, const double* tau);
// Least squares: the solution in the first n rows of b (max(m, n) rows). `driver` is 'g' (gels),
// 'y' (gelsy), 'd' (gelsd) or 's' (gelss); rank and s are written by those that find them.
int gels(char driver, int m, int n, int columns, float* a, int ld, float* b, int ld_b, float rcond,
         float* s, int* rank);
int gels(char driver, int m, int n, int columns, double* a, int ld, double* b, int ld_b,
         double rcond, double* s, int* rank);
// Solves op(A) X = B (left) or X op(A) = B in place of B, with one triangle of A.
void trsm(bool left, bool upper, bool transposed, bool unit, int rows, int columns, const float* a,
          int ld, float* b, int ld_b);
void trsm(bool left, bool upper, bool transposed, bool unit, int rows, int columns, const double* a,
          int ld, double* b, int ld_b);

}  // namespace gradwire::cpu::lapack
