// SPDX-License-Identifier: Apache-2.0
//
// The two products of an attention's tile, from shared memory to registers: scores of rows by keys, and outputs of rows
// by channels, which weights in registers make of values. Which of them a thread has is its business alone. This is for
// CUDA cores, in f32; tensor cores will be another one of these.
#pragma once

#include "targets/cuda/HeadTile.h"

namespace kiln::cuda {

/// What a block does of an attention, and how.
struct AttentionShape {
  int64_t rows, keys;      // of a tile
  int64_t rowsOfThread;    // of the tile's rows
  int64_t parts;           // warps that take keys of their own; 1: all threads share a tile
  int64_t splits;          // blocks that share the keys of a row
  int64_t depth, channels; // of a head

  int64_t teamThreads() const { return rows / rowsOfThread * 8; } // that share a tile
  int64_t threads() const { return teamThreads() * parts; }

  // In shared memory. Lines of queries and keys are a little longer, so that eight of them lie in different banks.
  int64_t paddedDepth() const { return int64_t(llvm::alignTo(depth, 8)); }
  int64_t paddedChannels() const { return int64_t(llvm::alignTo(channels, 32)); }
  LineShape queryLines() const { return {rows, paddedDepth(), paddedDepth() + 4}; }
  LineShape keyLines() const { return {keys, paddedDepth(), paddedDepth() + 4}; }
  LineShape valueLines() const { return {keys, paddedChannels(), paddedChannels()}; }
  LineShape weightLines() const { return {rows, keys, keys + 8}; }
  /// Of a part's result: maxima, sums, outputs.
  int64_t resultSize() const { return rows * (2 + paddedChannels()); }
};

/// A warp's lanes are eight along the keys or channels and four along the rows. A thread's elements are row by row.
class AttentionProduct {
public:
  AttentionProduct(tile::Builder &b, const AttentionShape &shape) : b(b), shape(shape) {}

  /// The thread's number in its team.
  void begin(tile::Value thread);

  int64_t rows() const { return shape.rowsOfThread; }
  int64_t keys() const { return shape.keys / 8; }
  int64_t outputsOfRow() const { return shape.paddedChannels() / 8; }
  /// In the tile: the i-th row of a thread, the j-th key.
  tile::Value row(int64_t i);
  tile::Value key(int64_t j);
  /// Whether the thread is the first of those that share its rows.
  tile::Value isFirstOfRow();

  /// The thread's scores, of each row all its keys.
  tile::Values scores(tile::Value queries, tile::Value keys);
  /// The outputs with those of the weights added, in order of the keys. Weights go by way of `room` of shared memory,
  /// of shape weightLines().
  tile::Values add(const tile::Values &weights, tile::Value room, tile::Value values, tile::ValueRange outputs);
  /// What all threads that share a row have together.
  tile::Value joinRow(tile::Value value, llvm::function_ref<tile::Value(tile::Value x, tile::Value y)> join);
  /// Writes the outputs as rows of paddedChannels().
  void store(tile::ValueRange outputs, tile::Value to);

private:
  tile::Value start(tile::Value address, tile::Value line, int64_t pitch);

  tile::Builder &b;
  AttentionShape shape;
  tile::Value firstRow, lane; // of the thread's rows, and along the keys
};

} // namespace kiln::cuda
