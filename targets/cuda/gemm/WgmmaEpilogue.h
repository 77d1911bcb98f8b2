// SPDX-License-Identifier: Apache-2.0
//
// The epilogue of wgmma: a warp moves its 16 rows of accumulators through shared memory, 32 columns at a time, so that
// lanes finish and store neighbouring elements.
#pragma once

#include "targets/cuda/gemm/WgmmaShape.h"

namespace kiln::cuda {

/// The position of accumulators: batch index, first row and first column.
struct SumTile {
  tile::Value batch, row, column;
};

class WgmmaEpilogue {
public:
  WgmmaEpilogue(tile::Builder &b, ElementEmitter &emitter, const StageContext &context, const Contraction &contraction);

  /// `staging`: shared memory for this warp only, of WgmmaShape::warpRows x WgmmaShape::chunkPitch floats.
  void begin(tile::Value rowCount, tile::Value columnCount, tile::Value lane, tile::Value staging);

  /// Returns whether the tile's first row and column are within the result.
  tile::Value isInside(const SumTile &tile) {
    return b.both(b.isBelow(tile.row, rowCount), b.isBelow(tile.column, columnCount));
  }

  /// Finishes and stores the warp's 16 rows of accumulators, in the layout of tile::addProduct. Fails after a
  /// diagnostic.
  mlir::LogicalResult finish(const SumTile &tile, tile::ValueRange sums);

private:
  void putChunk(tile::ValueRange sums, int64_t first);
  mlir::LogicalResult finishChunk(const SumTile &tile);
  mlir::LogicalResult finishElements(const SumTile &tile);
  mlir::LogicalResult finishNeighbours(const SumTile &tile);
  tile::Values loopsAt(tile::Value batch, tile::Value row, tile::Value column);

  tile::Builder &b;
  ElementEmitter &emitter;
  const StageContext &context;
  const Contraction &contraction;
  const int64_t together; // neighbouring columns that a lane finishes and stores
  const int64_t atOnce;   // rows that a lane finishes at a time
  tile::Value rowCount, columnCount, lane, staging, aligned;
};

} // namespace kiln::cuda
