// SPDX-License-Identifier: Apache-2.0
//
// The matrix products of an attention on tensor cores, by mma.sync: queries, keys and values are f16, bf16 or f32 that
// has been rounded to tf32; accumulators are f32.
//
// A warp has a multiple of 16 rows. Four neighbouring lanes share the accumulators of a row: lane 4 g + t has rows g
// and g + 8, and of each eight keys or channels numbers 2 t and 2 t + 1. The attention weights stay in the lane's
// registers, rounded:
//  - 16-bit types: pairs of the weights of 16 keys are the lane's fragment of an operand with K = 16;
//  - tf32: the fragment has indices t and t + 4 of a K of eight. The lane's keys 2 t and 2 t + 1 take their place: the
//    sum may take keys in any order, as long as the values are in the same order.
#pragma once

#include "targets/cuda/attention/Product.h"

namespace kiln::cuda {

class AttentionMmaProduct : public AttentionProduct {
public:
  /// Scores are `factor` times the dot products.
  AttentionMmaProduct(tile::Builder &b, const AttentionShape &shape, float factor)
      : AttentionProduct(b, shape), factor(factor) {}

  void begin(tile::Value thread) override;
  tile::Value row(int64_t i) override;
  tile::Value key(int64_t j) override;
  tile::Values scores(tile::Value queries, tile::Value keys) override;
  tile::Values add(const tile::Values &weights, tile::Value room, tile::Value values,
                   tile::ValueRange outputs) override;
  void store(tile::ValueRange outputs, tile::Value to) override;

  /// Returns the weights of 16 rows from row 16 i on as an operand fragment of four registers, for a K step of 32
  /// bytes of keys.
  tile::Values weightsOf(tile::ValueRange weights, int64_t i, int64_t step);

private:
  /// A tile in shared memory, as a lane reads it.
  struct Source {
    LineShape lines;
    tile::Value start; // byte offset in the tile of the lane's first element
  };
  tile::Values load(const Source &source, tile::Value tile, int64_t i, int64_t step, bool isTransposed);
  tile::Values valuesOf(tile::Value valuesAt, int64_t step, int64_t c);
  void multiplyAdd(llvm::ArrayRef<tile::Value> x, llvm::ArrayRef<tile::Value> y, tile::Values &sums, int64_t ofRow,
                   int64_t i, int64_t column);
  float factor;
  tile::Value quad; // index of the lane's quad; each of the eight quads has different rows
  tile::Value firstRow;
  Source queries, keysIn, values;
};

} // namespace kiln::cuda
