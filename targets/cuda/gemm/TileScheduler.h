// SPDX-License-Identifier: Apache-2.0
//
// Numbers the tiles of a contraction's accumulators, in a launch's code.
#pragma once

#include "targets/cuda/gemm/TileShape.h"

namespace kiln::cuda {

/// Tiles with neighbouring numbers share inputs: they iterate over eight row tiles before the next column tile.
class TileScheduler {
public:
  /// The first batch index, row and column of a tile.
  struct Tile {
    tile::Value batch, row, column;
  };

  TileScheduler(tile::Builder &b, const TileShape &shape) : b(b), shape(shape) {}

  /// Reads the launch's extents.
  void begin(ElementEmitter &emitter, const Contraction &contraction);
  Tile tileOf(tile::Value batch, tile::Value inBatch);

  tile::Value rowCount, columnCount, kExtent;
  tile::Value ofBatch; // tiles per batch
  tile::Value steps;   // K iterations, one for each pipeline stage

private:
  tile::Builder &b;
  TileShape shape;
  tile::Value down, across; // row tiles and column tiles
};

/// Returns the number of tiles, over the kernel's index arguments.
mlir::AffineExpr tilesOf(const Contraction &contraction, const TileShape &shape);

} // namespace kiln::cuda
