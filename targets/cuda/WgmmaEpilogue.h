// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the sums of wgmma: a warp brings its 16 rows through shared memory, 32 columns at a time, so that
// lanes finish and store neighbours.
#pragma once

#include "targets/cuda/WgmmaShape.h"

namespace kiln::cuda {

/// Where sums are: the number of their batch, their first row and their first column.
struct SumTile {
  tile::Value batch, row, column;
};

class WgmmaEpilogue {
public:
  WgmmaEpilogue(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction);

  /// `staging`: memory of the warp alone, of WgmmaShape::warpRows x WgmmaShape::chunkPitch floats.
  void begin(tile::Value rowCount, tile::Value columnCount, tile::Value lane, tile::Value staging);

  /// Whether a row and a column that begin there are within the result.
  tile::Value isInside(const SumTile &tile) {
    return b.both(b.isBelow(tile.row, rowCount), b.isBelow(tile.column, columnCount));
  }

  /// Finishes and stores the warp's 16 rows of sums, as tile::addProduct leaves them. Failure: after a diagnostic.
  mlir::LogicalResult finish(const SumTile &tile, tile::ValueRange sums);

private:
  void putChunk(tile::ValueRange sums, int64_t first);
  mlir::LogicalResult finishChunk(const SumTile &tile);
  mlir::LogicalResult finishElements(const SumTile &tile);
  mlir::LogicalResult finishNeighbours(const SumTile &tile);
  tile::Values loopsAt(tile::Value batch, tile::Value row, tile::Value column);

  tile::Builder &b;
  Reader &reader;
  const StepContext &context;
  const Contraction &contraction;
  const int64_t together; // neighbouring columns that a lane finishes and stores
  const int64_t atOnce;   // of how many rows at a time
  tile::Value rowCount, columnCount, lane, staging, aligned;
};

} // namespace kiln::cuda
