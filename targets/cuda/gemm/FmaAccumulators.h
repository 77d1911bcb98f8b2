// SPDX-License-Identifier: Apache-2.0
//
// Accumulates a block's tile in f32 on CUDA cores, by fused multiply-adds.
#pragma once

#include "targets/cuda/gemm/Accumulators.h"

namespace kiln::cuda {

/// Up to eight lanes of a warp are along the columns, the others along the rows; warps are arranged in the same way.
class TileProduct : public Product {
public:
  TileProduct(tile::Builder &b, const TileShape &shape, const InputTile &inputA, const InputTile &inputB);

  void begin(tile::Value thread) override;
  tile::Values zeros() override;
  tile::Values add(tile::Value stageA, tile::Value stageB, mlir::ValueRange sums) override;
  void store(const tile::Values &sums, tile::Value to) override;

private:
  /// One of the two inputs, as a thread reads it.
  struct Side {
    bool isKMajor;
    int64_t pitch, lanes, count; // f32 from row to row or from K index to K index; lanes of a warp, rows of a thread
    tile::Value first;           // first row of the thread in the tile
    int64_t rowOf(int64_t i) const;
    int64_t atOnce() const { return isKMajor ? 1 : 4; } // rows that a load covers
  };
  /// The values of four K indices, [row * 4 + k].
  using Fragment = llvm::SmallVector<tile::Value>;

  void load(const Side &side, tile::Value from, int64_t step, int64_t i, Fragment &fragment);
  tile::Value start(const Side &side, tile::Value stage);

  tile::Builder &b;
  TileShape shape;
  Side sideA, sideB;
};

} // namespace kiln::cuda
