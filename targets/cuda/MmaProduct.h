// SPDX-License-Identifier: Apache-2.0
//
// Sums of a block's tile on tensor cores, by mma.sync: f16 and bf16 as they are, f32 rounded to tf32; sums are f32.
//
// A warp has tm x tn sums: of 16 rows and 8 columns at a time each of its lanes has four. Of both inputs it loads 16
// rows (for the right one: columns) and 32 bytes of the depth at a time.
#pragma once

#include "targets/cuda/Product.h"

namespace kiln::cuda {

class MmaProduct : public Product {
public:
  MmaProduct(tile::Builder &b, const TileShape &shape, const InputTile &inputA, const InputTile &inputB);

  void begin(tile::Value thread) override;
  tile::Values zeros() override;
  tile::Values add(tile::Value stageA, tile::Value stageB, mlir::ValueRange sums) override;
  void store(const tile::Values &sums, tile::Value to) override;

private:
  /// One of the two inputs, as a lane reads it.
  struct Side {
    const InputTile &tile;
    tile::Value first; // of the warp's rows, in the tile
    tile::Value start; // of what the lane reads first, in bytes from the start of a stage
  };
  void place(Side &side, tile::Value first);
  tile::Value bytesTo(const Side &side, int64_t i, int64_t step);
  tile::Values load(const Side &side, tile::Value stage, int64_t i, int64_t step);

  tile::Builder &b;
  TileShape shape;
  tile::Value lane;
  Side sideA, sideB;
};

} // namespace kiln::cuda
