// SPDX-License-Identifier: Apache-2.0
//
// Products whose tiles are no multiple of what a GPU does at a time: a fixed number of blocks share the steps of the
// depth of all tiles evenly (stream-K; Osama et al. 2023).
//
//   steps    0        8        16       24      three tiles of eight steps, five blocks
//   tiles    |   0    |   1    |   2    |
//   blocks   | 0  | 1  | 2  | 3  | 4    |       tile 0 is block 0's and the beginning of block 1's, ..
//
// A block finishes a tile that it has whole. Of others it has the end of its first tile at most and the beginning of
// its last one: those partial sums go to scratch memory, and a second launch adds them in the order of the depth and
// does the epilogue. So no block waits for another one, and results depend on extents and the number of blocks alone.
#pragma once

#include "targets/cuda/TileGrid.h"

namespace kiln::cuda {

class StreamK {
public:
  /// By so many blocks; 0: tiles are not shared so. Nor are they where their steps could be more than numbers of i32.
  StreamK(const StepContext &context, const Contraction &contraction, const TileShape &shape, int64_t wanted);

  int64_t blocks() const { return count; }
  bool isStreamed() const { return count > 0; }

  /// What a block has of a tile.
  struct Part {
    TileGrid::Tile tile;
    tile::Value firstStep, steps; // of the depth
    tile::Value isWhole;
    tile::Value place; // of its partial sums among those of all blocks
  };

  /// In the first launch, for each part of the block. A step of no depth counts as one.
  void each(tile::Builder &b, TileGrid &grid, Reader &reader, llvm::function_ref<void(const Part &)> body) const;
  /// Writes a sum of a part: `element` counts those of a tile, row by row.
  void store(tile::Builder &b, Reader &reader, const Part &part, tile::Value element, tile::Value sum) const;
  /// Appends the function and the launch that finish tiles that are shared, and the memory of the partial sums.
  mlir::LogicalResult buildSecond(tile::Builder &b, DevicePlan &plan) const;

private:
  /// Block n has steps [start(n), start(n + 1)) of all tiles.
  struct Ranges {
    tile::Builder &b;
    tile::Value ofTile, least, longer; // steps of a tile; of a block; so many of them have one more

    tile::Value start(tile::Value block) const;
    tile::Value blockOf(tile::Value step) const;
  };
  Ranges rangesOf(tile::Builder &b, TileGrid &grid, Reader &reader) const;
  tile::Value load(tile::Builder &b, Reader &reader, tile::Value place, tile::Value element) const;
  mlir::LogicalResult finish(tile::Builder &b, Reader &reader, TileGrid &grid, const Ranges &ranges,
                             tile::Value boundary, tile::Value element) const;

  const StepContext &context;
  const Contraction &contraction;
  TileShape shape;
  int64_t count;
};

} // namespace kiln::cuda
