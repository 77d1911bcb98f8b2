// SPDX-License-Identifier: Apache-2.0
//
// The accumulators of a block's tile: which of them a thread has, and how a pipeline stage of shared memory is
// accumulated. FmaAccumulators.h implements this for CUDA cores, MmaAccumulators.h for tensor cores.
#pragma once

#include "targets/cuda/gemm/InputTile.h"

namespace kiln::cuda {

class Product {
public:
  virtual ~Product() = default;

  virtual void begin(tile::Value thread) = 0;
  virtual tile::Values zeros() = 0;
  /// Returns the accumulators after adding one pipeline stage, in order of K.
  virtual tile::Values add(tile::Value stageA, tile::Value stageB, mlir::ValueRange sums) = 0;
  /// Writes the accumulators to shared memory as [bm][sumPitch(shape)] f32.
  virtual void store(const tile::Values &sums, tile::Value to) = 0;
};

/// The padding puts rows that a warp stores in different banks.
inline int64_t sumPitch(const TileShape &shape) { return shape.bn + 8; }

/// Creates the implementation that the shape selects; it refers to the inputs.
std::unique_ptr<Product> createProduct(tile::Builder &b, const TileShape &shape, const InputTile &inputA,
                                       const InputTile &inputB);

} // namespace kiln::cuda
