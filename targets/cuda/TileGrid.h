// SPDX-License-Identifier: Apache-2.0
//
// The tiles of a contraction's sums, numbered through, in a launch's code.
#pragma once

#include "targets/cuda/TileShape.h"

namespace kiln::cuda {

/// Tiles with neighbouring numbers share inputs: they go through eight tiles of rows before the next tile of columns.
class TileGrid {
public:
  /// Where a tile begins.
  struct Tile {
    tile::Value batch, row, column;
  };

  TileGrid(tile::Builder &b, const TileShape &shape) : b(b), shape(shape) {}

  /// From the launch's extents.
  void begin(Reader &reader, const Contraction &contraction);
  Tile tileOf(tile::Value batch, tile::Value inBatch);

  tile::Value rowCount, columnCount, depth;
  tile::Value ofBatch; // tiles
  tile::Value steps;   // of the depth, in stages of shared memory

private:
  tile::Builder &b;
  TileShape shape;
  tile::Value down, across; // tiles
};

/// How many there are, over the kernel's index arguments.
mlir::AffineExpr tilesOf(const Contraction &contraction, const TileShape &shape);

} // namespace kiln::cuda
