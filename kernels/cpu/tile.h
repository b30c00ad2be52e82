// Primitives on tiles: the inner loops of the pointwise interpreter.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/expr/expr.h"

namespace gradwire::cpu {

// Elements of a tile, and the unit that the count given to a function is rounded up to: tile
// buffers hold whole blocks, and a function may read and write all of them.
inline constexpr int kTile = 256;
inline constexpr int kTileBlock = 32;

// Computes `n` elements, n a multiple of kTileBlock. dst may be exactly an argument whose elements
// have the same size; otherwise buffers do not overlap. No alignment beyond the elements' own.
// An element's result depends on its arguments alone, never on its place in the tile.
using TileFn = void (*)(void* dst, const void* a, const void* b, const void* c, int64_t n);

// The primitives that pairs are made of, in this order: add, sub, mul, div.
inline constexpr int kPairPrims = 4;

// Null entries are combinations that no Program may contain. Types are register types.
struct TileOps {
  TileFn code[expr::kPrimCount][kDTypeCount];  // by primitive and argument type
  TileFn cast[kDTypeCount][kDTypeCount];       // from, to
  TileFn round16[kDTypeCount];                 // float32 -> float16 / bfloat16 -> float32
  TileFn widen[kDTypeCount];                   // float16 / bfloat16 -> float32
  TileFn narrow[kDTypeCount];                  // float32 -> float16 / bfloat16
  TileFn cube[kDTypeCount];                    // a * a * a
  // pair[type][p][q]: first q(p(a, b), c), second q(c, p(a, b)).
  TileFn pair[kDTypeCount][kPairPrims][kPairPrims][2];
  TileFn copy[9];    // by element size
  TileFn stream[9];  // the same past the caches; dst aligned to 64, followed by stream_fence
  void (*stream_fence)();
};

enum class Isa { kAvx2, kAvx512 };

bool isa_supported(Isa isa);

// The functions for this processor's widest instruction set, or for the one of select_isa.
const TileOps& tile_ops();

// For tests: which set later calls of tile_ops give. The set must be supported; no launch may be
// running.
void select_isa(Isa isa);

}  // namespace gradwire::cpu
