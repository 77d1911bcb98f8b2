// SPDX-License-Identifier: Apache-2.0
//
// An attention's products on tensor cores, by mma.sync: queries, keys and values are f16, bf16 or f32 that has been
// rounded to tf32, sums f32.
//
// A warp has some times 16 rows, of each of which four neighbouring lanes have the sums: lane 4 g + t has rows g and
// g + 8, and of each eight keys or channels the two from 2 t on. The weights stay in its registers, rounded:
//  - of 16 bits, those of 16 keys are as pairs what a lane has of a factor with 16 of the depth;
//  - of tf32 a lane has t and t + 4 of eight of a factor's depth. These are its keys 2 t and 2 t + 1: the sum may take
//    keys in any order that the values have as well.
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

  /// Of 16 rows from 16 i on, the weights of a step of 32 bytes of keys as a factor: four registers.
  tile::Values weightsOf(tile::ValueRange weights, int64_t i, int64_t step);

private:
  /// A tile in shared memory, as a lane reads it.
  struct Source {
    LineShape lines;
    tile::Value start; // of what the lane reads first, in bytes from the start of the tile
  };
  tile::Values load(const Source &source, tile::Value tile, int64_t i, int64_t step, bool isTransposed);
  tile::Values valuesOf(tile::Value valuesAt, int64_t step, int64_t c);
  void multiplyAdd(llvm::ArrayRef<tile::Value> x, llvm::ArrayRef<tile::Value> y, tile::Values &sums, int64_t ofRow,
                   int64_t i, int64_t column);
  float factor;
  tile::Value quad; // which of the eight that have rows of their own
  tile::Value firstRow;
  Source queries, keysIn, values;
};

} // namespace kiln::cuda
