// SPDX-License-Identifier: Apache-2.0
//
// A thread group that owns a row: a warp, of which a block may have several, or a whole block. Its threads take the
// elements of the row in turn, so that neighbouring threads read contiguous elements, and combine what each of them
// reduced.
#pragma once

#include "targets/cuda/ptx/Combiner.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace kiln::cuda {

constexpr int64_t lanesOfWarp = 32;

class ThreadGroup {
public:
  /// `threads`: a power of two from 32 on. A block has `perBlock` groups; more than one only if they are warps.
  ThreadGroup(tile::Builder &b, int64_t threads, int64_t perBlock);
  /// Makes each warp of a block a group; `number` is the index of the warp's group.
  ThreadGroup(tile::Builder &b, tile::Value number);

  /// Return the index of the group in the grid, and of the thread in the group.
  tile::Value number() const { return threadGroup; }
  tile::Value thread() const { return member; }

  /// Computes values = body(element, values) for each of the thread's elements among 0 <= element < count. For rows of
  /// a `fixed` length with few elements per thread the loop is unrolled; `body` may then run again for an element, and
  /// the values of that are dropped.
  tile::Values reduce(tile::Value count, std::optional<int64_t> fixed, tile::Values values,
                      llvm::function_ref<tile::Values(tile::Value element, const tile::Values &values)> body);
  /// Calls body(element) once for each of the thread's elements.
  void forEach(tile::Value count, std::optional<int64_t> fixed, llvm::function_ref<void(tile::Value element)> body);

  /// Returns the initial values of a thread, such that all threads together start with `initial`.
  tile::Values start(const Combiner &combiner, const tile::Values &initial);
  /// Combines the values of all threads; the result has the same bits in each thread and in each run. All threads of a
  /// warp must call this.
  tile::Values combine(const Combiner &combiner, tile::Values values);

  /// Waits for all threads of the group.
  void sync();

private:
  bool isWrittenOut(std::optional<int64_t> fixed) const;
  tile::Value elementAt(int64_t first, int64_t count);
  tile::Value isThere(int64_t first, int64_t count);
  tile::Values combineWarp(const Combiner &combiner, tile::Values values, int64_t lanes);

  tile::Builder &b;
  int64_t threads;
  tile::Value threadGroup, member;
  llvm::DenseMap<std::pair<unsigned, mlir::Type>, tile::Value> shared; // key: result number and type
  llvm::DenseMap<std::pair<int64_t, int64_t>, tile::Value> elements;   // in unrolled code; key: first element and count
  int64_t combines = 0;
};

} // namespace kiln::cuda
