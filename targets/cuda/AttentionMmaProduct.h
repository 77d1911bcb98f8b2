// SPDX-License-Identifier: Apache-2.0
//
// An attention's products on tensor cores, by mma.sync: queries, keys, values and weights are f16 or bf16, sums f32.
//
// A warp has some times 16 rows, of each of which four neighbouring lanes have the sums: lane 4 g + t has rows g and
// g + 8, and of each eight keys or channels the two from 2 t on. The weights of 16 keys are what a lane has of a factor
// with 16 of the depth: they stay in its registers, as pairs that are rounded.
#pragma once

#include "targets/cuda/AttentionProduct.h"

namespace kiln::cuda {

class AttentionMmaProduct : public AttentionProduct {
public:
  /// Scores are `factor` times the products.
  AttentionMmaProduct(tile::Builder &b, const AttentionShape &shape, float factor)
      : AttentionProduct(b, shape), factor(factor) {}

  void begin(tile::Value thread) override;
  tile::Value row(int64_t i) override;
  tile::Value key(int64_t j) override;
  tile::Values scores(tile::Value queries, tile::Value keys) override;
  tile::Values add(const tile::Values &weights, tile::Value room, tile::Value values,
                   tile::ValueRange outputs) override;
  void store(tile::ValueRange outputs, tile::Value to) override;

  /// Of 16 rows from 16 i on, the weights of 16 keys from 16 step on as a factor: four registers.
  tile::Values weightsOf(tile::ValueRange weights, int64_t i, int64_t step);

private:
  /// A tile in shared memory, as ldmatrix reads it.
  struct Source {
    LineShape lines;
    tile::Value start; // of what the lane reads first, in bytes from the start of the tile
  };
  tile::Values load(const Source &source, tile::Value tile, int64_t i, int64_t step, bool isTransposed);
  void multiplyAdd(llvm::ArrayRef<tile::Value> x, llvm::ArrayRef<tile::Value> y, tile::Values &sums, int64_t ofRow,
                   int64_t i, int64_t column);
  float factor;
  tile::Value quad; // which of the eight that have rows of their own
  tile::Value firstRow;
  Source queries, keysIn, values;
};

} // namespace kiln::cuda
