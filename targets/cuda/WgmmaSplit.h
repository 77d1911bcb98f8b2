// SPDX-License-Identifier: Apache-2.0
//
// Blocks of a cluster that share the depth of a tile: each leaves the sums of its part in its own shared memory, where
// stages were, and finishes its share of the tile with what it reads of all of them, in their order.
#pragma once

#include "targets/cuda/WgmmaEpilogue.h"

namespace kiln::cuda {

class WgmmaSplit {
public:
  WgmmaSplit(tile::Builder &b, const WgmmaShape &shape, WgmmaEpilogue &epilogue)
      : b(b), shape(shape), epilogue(epilogue) {}

  /// The rank is the block's in its cluster. `shared`: where its stages begin, as an address and as a number.
  void begin(tile::Value rank, tile::Value shared, tile::Value start);

  /// The first step of the block's part and how many there are, of so many of the tile.
  std::pair<tile::Value, tile::Value> partOf(tile::Value steps);

  /// By all warps that multiply, after the last product of a tile: finishes it.
  mlir::LogicalResult finish(const SumTile &tile, tile::ValueRange sums, tile::Value warp, tile::Value lane);
  /// Meanwhile by all others of the block: afterwards stages may be written again.
  void pass();

private:
  int64_t chunks() const { return shape.bn / WgmmaShape::chunk; } // of a row of the tile
  int64_t warps() const { return shape.groups * 4; }              // that multiply
  void put(tile::ValueRange sums, tile::Value warp, tile::Value lane);
  tile::Values add(tile::Value unit, tile::Value lane);

  tile::Builder &b;
  const WgmmaShape &shape;
  WgmmaEpilogue &epilogue;
  tile::Value rank, shared, start;
};

} // namespace kiln::cuda
