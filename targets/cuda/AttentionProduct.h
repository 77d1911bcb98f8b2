// SPDX-License-Identifier: Apache-2.0
//
// The two products of an attention's tile, from shared memory to registers: scores of rows by keys, and outputs of rows
// by channels, which weights in registers make of values. Which of them a thread has is its business alone. One of
// these is for CUDA cores (AttentionFmaProduct.h), one for tensor cores (AttentionMmaProduct.h).
#pragma once

#include "targets/cuda/AttentionMatch.h"
#include "targets/cuda/AttentionShape.h"

namespace kiln::cuda {

/// A thread's elements are row by row.
class AttentionProduct {
public:
  AttentionProduct(tile::Builder &b, const AttentionShape &shape) : b(b), shape(shape) {}
  virtual ~AttentionProduct() = default;

  /// The thread's number in its team.
  virtual void begin(tile::Value thread) = 0;

  int64_t rows() const { return shape.rowsOfThread; }
  int64_t keys() const { return shape.keys / shape.threadsOfRow(); }
  int64_t outputsOfRow() const { return shape.paddedChannels() / shape.threadsOfRow(); }
  /// In the tile: the i-th row of a thread, the j-th key.
  virtual tile::Value row(int64_t i) = 0;
  virtual tile::Value key(int64_t j) = 0;
  /// Whether the thread is the first of those that share its rows.
  tile::Value isFirstOfRow();

  /// The thread's sums for scores, of each row all its keys.
  virtual tile::Values scores(tile::Value queries, tile::Value keys) = 0;
  /// The outputs with those of the weights added, in order of the keys. Weights may go by way of `room` of shared
  /// memory, of shape weightLines().
  virtual tile::Values add(const tile::Values &weights, tile::Value room, tile::Value values,
                           tile::ValueRange outputs) = 0;
  /// What all threads that share a row have together.
  tile::Value joinRow(tile::Value value, llvm::function_ref<tile::Value(tile::Value x, tile::Value y)> join);
  /// Writes the outputs as rows of outputPitch().
  virtual void store(tile::ValueRange outputs, tile::Value to) = 0;

protected:
  tile::Builder &b;
  AttentionShape shape;
  tile::Value lane; // the thread's number among those that share its rows; they are neighbours
};

/// For what the shape says.
std::unique_ptr<AttentionProduct> createAttentionProduct(tile::Builder &b, const Attention &attention,
                                                         const AttentionShape &shape);

} // namespace kiln::cuda
