// SPDX-License-Identifier: Apache-2.0
//
// Stream-K for GEMMs whose number of tiles is no multiple of the blocks that a GPU runs at a time: a fixed number of
// blocks share the K iterations of all tiles evenly (Osama et al. 2023).
//
//   iterations   0        8        16       24      three tiles of eight K iterations, five blocks
//   tiles        |   0    |   1    |   2    |
//   blocks       | 0  | 1  | 2  | 3  | 4    |       block 0 and the beginning of block 1 compute tile 0, ..
//
// A block finishes a tile that it computes completely. Otherwise it has at most the end of its first tile and the
// beginning of its last one: those partial sums go to scratch memory, and a second launch adds them in order of K and
// applies the epilogue. So no block waits for another one, and results depend only on extents and the number of
// blocks.
#pragma once

#include "targets/cuda/gemm/TileScheduler.h"

namespace kiln::cuda {

class StreamK {
public:
  /// `wanted`: the number of blocks; 0: no stream-K. It is not used either if the number of K iterations could exceed
  /// i32.
  StreamK(const StageContext &context, const Contraction &contraction, const TileShape &shape, int64_t wanted);

  int64_t blocks() const { return count; }
  bool isStreamed() const { return count > 0; }

  /// The part of a tile that a block computes.
  struct Part {
    TileScheduler::Tile tile;
    tile::Value firstStep, steps; // K iterations
    tile::Value isWhole;
    tile::Value place; // index of its partial sums among those of all blocks
  };

  /// Iterates over the block's parts, in the first launch. A tile with a K of 0 counts as one iteration.
  void each(tile::Builder &b, TileScheduler &scheduler, ElementEmitter &emitter,
            llvm::function_ref<void(const Part &)> body) const;
  /// Writes a sum of a part. `element`: the row-major index in the tile.
  void store(tile::Builder &b, ElementEmitter &emitter, const Part &part, tile::Value element, tile::Value sum) const;
  /// Appends the function and the launch that finish shared tiles, and reserves memory for the partial sums.
  mlir::LogicalResult buildSecond(tile::Builder &b, LaunchPlan &plan) const;

private:
  /// Block n computes K iterations [start(n), start(n + 1)) of all tiles.
  struct Ranges {
    tile::Builder &b;
    tile::Value ofTile, least, longer; // iterations per tile, per block; `longer` blocks have one more

    tile::Value start(tile::Value block) const;
    tile::Value blockOf(tile::Value step) const;
  };
  Ranges rangesOf(tile::Builder &b, TileScheduler &scheduler, ElementEmitter &emitter) const;
  tile::Value load(tile::Builder &b, ElementEmitter &emitter, tile::Value place, tile::Value element) const;
  mlir::LogicalResult finish(tile::Builder &b, ElementEmitter &emitter, TileScheduler &scheduler, const Ranges &ranges,
                             tile::Value boundary, tile::Value element) const;

  const StageContext &context;
  const Contraction &contraction;
  TileShape shape;
  int64_t count;
};

} // namespace kiln::cuda
