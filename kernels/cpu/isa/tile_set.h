// How the sources here fill a TileOps, each its own part.
#pragma once

#include "kernels/cpu/tile.h"

namespace gradwire::cpu {

#define GW_TILE_SETS(isa)          \
  namespace isa {                  \
  void fill_float(TileOps& ops);   \
  void fill_integer(TileOps& ops); \
  void fill_compare(TileOps& ops); \
  void fill_convert(TileOps& ops); \
  void fill_math(TileOps& ops);    \
  void fill_special(TileOps& ops); \
  void fill_pairs(TileOps& ops);   \
  }
GW_TILE_SETS(avx2)
GW_TILE_SETS(avx512)
#undef GW_TILE_SETS

}  // namespace gradwire::cpu
