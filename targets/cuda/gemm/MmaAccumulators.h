// SPDX-License-Identifier: Apache-2.0
//
// Accumulates a block's tile on tensor cores, by mma.sync: f16 and bf16 as they are, f32 rounded to tf32; accumulators
// are f32.
//
// A warp has tm x tn accumulators; each lane has four of each 16 x 8. The warp loads 16 rows (columns of the right
// input) and 32 bytes of K of each input at a time.
#pragma once

#include "targets/cuda/gemm/Accumulators.h"

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
    tile::Value first; // first row of the warp in the tile
    tile::Value start; // byte offset in a stage of the lane's first element
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
