// SPDX-License-Identifier: Apache-2.0
//
// The two matrix products of an attention tile, from shared memory to registers: scores (rows x keys), and outputs
// (rows x channels), for which the attention weights are in registers. Only the implementation knows which elements a
// thread has: FmaProduct.h for CUDA cores, MmaProduct.h for tensor cores.
#pragma once

#include "targets/cuda/attention/Match.h"
#include "targets/cuda/attention/TileShape.h"

namespace kiln::cuda {

/// A thread's elements are in row-major order.
class AttentionProduct {
public:
  AttentionProduct(tile::Builder &b, const AttentionShape &shape) : b(b), shape(shape) {}
  virtual ~AttentionProduct() = default;

  /// `thread`: the thread's index in its thread group.
  virtual void begin(tile::Value thread) = 0;

  int64_t rows() const { return shape.rowsOfThread; }
  int64_t keys() const { return shape.keys / shape.threadsOfRow(); }
  int64_t outputsOfRow() const { return shape.paddedChannels() / shape.threadsOfRow(); }
  /// Return the i-th row and the j-th key of the thread, relative to the tile.
  virtual tile::Value row(int64_t i) = 0;
  virtual tile::Value key(int64_t j) = 0;
  /// Returns whether the thread is the first of those that share its rows.
  tile::Value isFirstOfRow();

  /// Computes the thread's accumulators of the scores, all keys of each row.
  virtual tile::Values scores(tile::Value queries, tile::Value keys) = 0;
  /// Returns the outputs after adding the weighted values, in order of the keys. The weights may pass through `room`,
  /// shared memory of shape weightLines().
  virtual tile::Values add(const tile::Values &weights, tile::Value room, tile::Value values,
                           tile::ValueRange outputs) = 0;
  /// Reduces a value over all threads that share a row.
  tile::Value reduceRow(tile::Value value, llvm::function_ref<tile::Value(tile::Value x, tile::Value y)> combine);
  /// Writes the outputs as rows of outputPitch().
  virtual void store(tile::ValueRange outputs, tile::Value to) = 0;

protected:
  tile::Builder &b;
  AttentionShape shape;
  tile::Value lane; // the thread's index among the neighbouring lanes that share its rows
};

/// Creates the implementation that the shape selects.
std::unique_ptr<AttentionProduct> createAttentionProduct(tile::Builder &b, const Attention &attention,
                                                         const AttentionShape &shape);

} // namespace kiln::cuda
