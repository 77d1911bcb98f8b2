// SPDX-License-Identifier: Apache-2.0
//
// Split-K within a cluster: each block leaves the partial sums of its part of K in its shared memory, in place of the
// pipeline stages, and finishes its share of the tile from the partial sums of all blocks, added in block order.
#pragma once

#include "targets/cuda/gemm/WgmmaEpilogue.h"

namespace kiln::cuda {

class WgmmaSplit {
public:
  WgmmaSplit(tile::Builder &b, const WgmmaShape &shape, WgmmaEpilogue &epilogue)
      : b(b), shape(shape), epilogue(epilogue) {}

  /// `rank`: the block's rank in its cluster. `shared` and `start`: the beginning of its stages as a pointer and as an
  /// integer.
  void begin(tile::Value rank, tile::Value shared, tile::Value start);

  /// Returns the first K iteration of the block's part and the number of its iterations, given those of the tile.
  std::pair<tile::Value, tile::Value> partOf(tile::Value steps);

  /// Finishes a tile. All consumer warps call this after the last wgmma of the tile.
  mlir::LogicalResult finish(const SumTile &tile, tile::ValueRange sums, tile::Value warp, tile::Value lane);
  /// All other warps of the block call this meanwhile; afterwards stages may be written again.
  void pass();

private:
  int64_t chunks() const { return shape.bn / WgmmaShape::chunk; } // in a row of the tile
  int64_t warps() const { return shape.groups * 4; }              // consumer warps
  void put(tile::ValueRange sums, tile::Value warp, tile::Value lane);
  tile::Values add(tile::Value unit, tile::Value lane);

  tile::Builder &b;
  const WgmmaShape &shape;
  WgmmaEpilogue &epilogue;
  tile::Value rank, shared, start;
};

} // namespace kiln::cuda
