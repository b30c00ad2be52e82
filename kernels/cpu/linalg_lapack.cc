#include "kernels/cpu/linalg_lapack.h"

#include <cblas.h>
#include <lapack.h>

#include <algorithm>
#include <optional>

#include "kernels/cpu/scratch.h"

namespace gradwire::cpu::lapack {
namespace {

template <class T>
class Work {
 public:
  explicit Work(int64_t n) : scratch_(static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T)) {}
  T* data() const { return scratch_.as<T>(); }

 private:
  Scratch scratch_;
};

// A work size that LAPACK gave as a floating number: float32 may have rounded it down.
template <class T>
int size_of(T asked) {
  double size = static_cast<double>(asked) * 1.001 + 8;
  return static_cast<int>(std::min(size, 2147483000.0));
}

}  // namespace

#define GW_LAPACK(T, p)                                                                            \
  int getrf(int m, int n, T* a, int ld, int* pivots) {                                             \
    int info = 0;                                                                                  \
    LAPACK_##p##getrf(&m, &n, a, &ld, pivots, &info);                                              \
    return info;                                                                                   \
  }                                                                                                \
  int getrs(char trans, int n, int columns, const T* lu, int ld, const int* pivots, T* b,          \
            int ld_b) {                                                                            \
    int info = 0;                                                                                  \
    LAPACK_##p##getrs(&trans, &n, &columns, lu, &ld, pivots, b, &ld_b, &info);                     \
    return info;                                                                                   \
  }                                                                                                \
  int potrf(char uplo, int n, T* a, int ld) {                                                      \
    int info = 0;                                                                                  \
    LAPACK_##p##potrf(&uplo, &n, a, &ld, &info);                                                   \
    return info;                                                                                   \
  }                                                                                                \
  int syevd(bool vectors, char uplo, int n, T* a, int ld, T* values) {                             \
    char job = vectors ? 'V' : 'N';                                                                \
    int info = 0, size = -1, int_size = -1, ints = 0;                                              \
    T asked = 0;                                                                                   \
    LAPACK_##p##syevd(&job, &uplo, &n, a, &ld, values, &asked, &size, &ints, &int_size, &info);    \
    if (info) return info;                                                                         \
    size = size_of(asked);                                                                         \
    int_size = std::max(ints, 1);                                                                  \
    Work<T> work(size);                                                                            \
    Work<int> iwork(int_size);                                                                     \
    if (!work.data() || !iwork.data()) return kNoMemory;                                           \
    LAPACK_##p##syevd(&job, &uplo, &n, a, &ld, values, work.data(), &size, iwork.data(),           \
                      &int_size, &info);                                                           \
    return info;                                                                                   \
  }                                                                                                \
  int gesdd(char job, int m, int n, T* a, int ld, T* s, T* u, int ld_u, T* vt, int ld_vt) {        \
    int info = 0, size = -1;                                                                       \
    T asked = 0;                                                                                   \
    Work<int> iwork(int64_t{8} * std::min(m, n));                                                  \
    if (!iwork.data()) return kNoMemory;                                                           \
    LAPACK_##p##gesdd(&job, &m, &n, a, &ld, s, u, &ld_u, vt, &ld_vt, &asked, &size, iwork.data(),  \
                      &info);                                                                      \
    if (info) return info;                                                                         \
    size = size_of(asked);                                                                         \
    Work<T> work(size);                                                                            \
    if (!work.data()) return kNoMemory;                                                            \
    LAPACK_##p##gesdd(&job, &m, &n, a, &ld, s, u, &ld_u, vt, &ld_vt, work.data(), &size,           \
                      iwork.data(), &info);                                                        \
    return info;                                                                                   \
  }                                                                                                \
  int geqrf(int m, int n, T* a, int ld, T* tau) {                                                  \
    int info = 0, size = -1;                                                                       \
    T asked = 0;                                                                                   \
    LAPACK_##p##geqrf(&m, &n, a, &ld, tau, &asked, &size, &info);                                  \
    if (info) return info;                                                                         \
    size = size_of(asked);                                                                         \
    Work<T> work(size);                                                                            \
    if (!work.data()) return kNoMemory;                                                            \
    LAPACK_##p##geqrf(&m, &n, a, &ld, tau, work.data(), &size, &info);                             \
    return info;                                                                                   \
  }                                                                                                \
  int orgqr(int m, int columns, int reflectors, T* a, int ld, const T* tau) {                      \
    int info = 0, size = -1;                                                                       \
    T asked = 0;                                                                                   \
    LAPACK_##p##orgqr(&m, &columns, &reflectors, a, &ld, tau, &asked, &size, &info);               \
    if (info) return info;                                                                         \
    size = size_of(asked);                                                                         \
    Work<T> work(size);                                                                            \
    if (!work.data()) return kNoMemory;                                                            \
    LAPACK_##p##orgqr(&m, &columns, &reflectors, a, &ld, tau, work.data(), &size, &info);          \
    return info;                                                                                   \
  }                                                                                                \
  int gels(char driver, int m, int n, int columns, T* a, int ld, T* b, int ld_b, T rcond, T* s,    \
           int* rank) {                                                                            \
    Work<int> iwork(driver == 'y' ? n : int64_t{128} * (std::min(m, n) + 1));                      \
    if (!iwork.data()) return kNoMemory;                                                           \
    std::fill(iwork.data(), iwork.data() + (driver == 'y' ? n : 1), 0);                            \
    auto run = [&](T* work, int size) {                                                            \
      int info = 0;                                                                                \
      char trans = 'N';                                                                            \
      if (driver == 'g') {                                                                         \
        LAPACK_##p##gels(&trans, &m, &n, &columns, a, &ld, b, &ld_b, work, &size, &info);          \
      } else if (driver == 'y') {                                                                  \
        LAPACK_##p##gelsy(&m, &n, &columns, a, &ld, b, &ld_b, iwork.data(), &rcond, rank, work,    \
                          &size, &info);                                                           \
      } else if (driver == 'd') {                                                                  \
        LAPACK_##p##gelsd(&m, &n, &columns, a, &ld, b, &ld_b, s, &rcond, rank, work, &size,        \
                          iwork.data(), &info);                                                    \
      } else {                                                                                     \
        LAPACK_##p##gelss(&m, &n, &columns, a, &ld, b, &ld_b, s, &rcond, rank, work, &size,        \
                          &info);                                                                  \
      }                                                                                            \
      return info;                                                                                 \
    };                                                                                             \
    T asked = 0;                                                                                   \
    int info = run(&asked, -1);                                                                    \
    if (info) return info;                                                                         \
    int size = size_of(asked);                                                                     \
    Work<T> work(size);                                                                            \
    return work.data() ? run(work.data(), size) : kNoMemory;                                       \
  }                                                                                                \
  void trsm(bool left, bool upper, bool transposed, bool unit, int rows, int columns, const T* a,  \
            int ld, T* b, int ld_b) {                                                              \
    cblas_##p##trsm(CblasColMajor, left ? CblasLeft : CblasRight, upper ? CblasUpper : CblasLower, \
                    transposed ? CblasTrans : CblasNoTrans, unit ? CblasUnit : CblasNonUnit, rows, \
                    columns, 1, a, ld, b, ld_b);                                                   \
  }

GW_LAPACK(float, s)
GW_LAPACK(double, d)
#undef GW_LAPACK

}  // namespace gradwire::cpu::lapack
