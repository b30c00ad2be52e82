#include "kernels/cpu/tile.h"

#include <atomic>

#include "kernels/cpu/isa/tile_set.h"

namespace gradwire::cpu {
namespace {

TileOps make_avx2() {
  TileOps ops{};
  avx2::fill_float(ops);
  avx2::fill_integer(ops);
  avx2::fill_compare(ops);
  avx2::fill_convert(ops);
  avx2::fill_math(ops);
  avx2::fill_special(ops);
  avx2::fill_pairs(ops);
  return ops;
}

TileOps make_avx512() {
  TileOps ops{};
  avx512::fill_float(ops);
  avx512::fill_integer(ops);
  avx512::fill_compare(ops);
  avx512::fill_convert(ops);
  avx512::fill_math(ops);
  avx512::fill_special(ops);
  avx512::fill_pairs(ops);
  return ops;
}

const TileOps& ops_of(Isa isa) {
  if (isa == Isa::kAvx512) {
    static const TileOps ops = make_avx512();
    return ops;
  }
  static const TileOps ops = make_avx2();
  return ops;
}

std::atomic<const TileOps*> selected{nullptr};

}  // namespace

bool isa_supported(Isa isa) {
  if (isa == Isa::kAvx2) return true;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

const TileOps& tile_ops() {
  const TileOps* ops = selected.load(std::memory_order_acquire);
  if (ops == nullptr) {
    ops = &ops_of(isa_supported(Isa::kAvx512) ? Isa::kAvx512 : Isa::kAvx2);
    selected.store(ops, std::memory_order_release);
  }
  return *ops;
}

void select_isa(Isa isa) {
  selected.store(&ops_of(isa), std::memory_order_release);
}

}  // namespace gradwire::cpu
