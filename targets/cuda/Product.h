// SPDX-License-Identifier: Apache-2.0
//
// The sums of a block's tile: which of them a thread has, and how those of a stage of shared memory are added. One of
// these is for CUDA cores (TileProduct.h), one for tensor cores (MmaProduct.h).
#pragma once

#include "targets/cuda/InputTile.h"

namespace kiln::cuda {

class Product {
public:
  virtual ~Product() = default;

  virtual void begin(tile::Value thread) = 0;
  virtual tile::Values zeros() = 0;
  /// The sums with those of one stage added, in order of the depth.
  virtual tile::Values add(tile::Value stageA, tile::Value stageB, mlir::ValueRange sums) = 0;
  /// Writes the sums to [bm][sumPitch(shape)] f32 of shared memory.
  virtual void store(const tile::Values &sums, tile::Value to) = 0;
};

/// Rows that a warp stores to lie in different banks.
inline int64_t sumPitch(const TileShape &shape) { return shape.bn + 8; }

/// For what the shape says; it refers to the inputs.
std::unique_ptr<Product> createProduct(tile::Builder &b, const TileShape &shape, const InputTile &inputA,
                                       const InputTile &inputB);

} // namespace kiln::cuda
