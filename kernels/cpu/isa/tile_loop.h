// Loops over tiles. Everything has internal linkage: each instruction set has its own copy.
#pragma once

#include <cstdint>

#include "kernels/cpu/tile.h"

namespace gradwire::cpu {
namespace {

// Types by DType, for registers.
template <DType>
struct RegisterOf;
// clang-format off
template <> struct RegisterOf<DType::kFloat32> { using type = float; };
template <> struct RegisterOf<DType::kFloat64> { using type = double; };
template <> struct RegisterOf<DType::kInt64> { using type = int64_t; };
template <> struct RegisterOf<DType::kInt32> { using type = int32_t; };
template <> struct RegisterOf<DType::kInt16> { using type = int16_t; };
template <> struct RegisterOf<DType::kInt8> { using type = int8_t; };
template <> struct RegisterOf<DType::kUInt8> { using type = uint8_t; };
template <> struct RegisterOf<DType::kBool> { using type = uint8_t; };
// clang-format on
template <DType D>
using RegisterT = typename RegisterOf<D>::type;

inline int64_t blocks(int64_t n) {
  return n & ~int64_t{kTileBlock - 1};
}

// F is a stateless callable type; A, B, C the arguments' and R the result's element type.
template <class F, class R, class A>
void loop1(void* dst, const void* a, const void*, const void*, int64_t n) {
  R* d = static_cast<R*>(dst);
  const A* x = static_cast<const A*>(a);
  n = blocks(n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = F()(x[i]);
}

template <class F, class R, class A>
void loop2(void* dst, const void* a, const void* b, const void*, int64_t n) {
  R* d = static_cast<R*>(dst);
  const A* x = static_cast<const A*>(a);
  const A* y = static_cast<const A*>(b);
  n = blocks(n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = F()(x[i], y[i]);
}

template <class F, class R, class A, class B, class C>
void loop3(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  R* d = static_cast<R*>(dst);
  const A* x = static_cast<const A*>(a);
  const B* y = static_cast<const B*>(b);
  const C* z = static_cast<const C*>(c);
  n = blocks(n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = F()(x[i], y[i], z[i]);
}

inline TileFn& entry(TileOps& ops, expr::Prim prim, DType type) {
  return ops.code[static_cast<int>(prim)][static_cast<int>(type)];
}

}  // namespace
}  // namespace gradwire::cpu
