// SPDX-License-Identifier: Apache-2.0
//
// The threads that have a row: a warp, of which a block may have several, or a whole block. They take the elements of
// the row in turn, so that neighbours read what lies side by side, and join what each of them reduced.
#pragma once

#include "targets/cuda/Combiner.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace kiln::cuda {

class Team {
public:
  /// Of so many threads, a power of two from 32 on; of one warp there are `perBlock` in a block.
  Team(tile::Builder &b, int64_t threads, int64_t perBlock);

  /// Which of the grid's teams it is; the thread's number in it.
  tile::Value number() const { return team; }
  tile::Value thread() const { return member; }

  /// values = body(element, values) for each of the thread's elements among 0 <= element < count. Of a row whose length
  /// is `fixed` and few elements a thread, code is written out; `body` may then be done for an element again, whose
  /// values are dropped.
  tile::Values reduce(tile::Value count, std::optional<int64_t> fixed, tile::Values values,
                      llvm::function_ref<tile::Values(tile::Value element, const tile::Values &values)> body);
  /// The same without values, once for each element.
  void forEach(tile::Value count, std::optional<int64_t> fixed, llvm::function_ref<void(tile::Value element)> body);

  /// What a thread's values start with, so that all together start with `initial`.
  tile::Values start(const Combiner &combiner, const tile::Values &initial);
  /// What all threads have together, the same bits in each of them and in each run. All threads of a warp come here.
  tile::Values join(const Combiner &combiner, tile::Values values);

  /// Waits for all threads of the team.
  void sync();

private:
  bool isWrittenOut(std::optional<int64_t> fixed) const;
  tile::Value elementAt(int64_t first, int64_t count);
  tile::Value isThere(int64_t first, int64_t count);
  tile::Values joinWarp(const Combiner &combiner, tile::Values values, int64_t lanes);

  tile::Builder &b;
  int64_t threads;
  tile::Value team, member;
  llvm::DenseMap<std::pair<unsigned, mlir::Type>, tile::Value> shared; // of a result's number and type
  llvm::DenseMap<std::pair<int64_t, int64_t>, tile::Value> elements;   // of written out code, by first one and count
  int64_t joins = 0;
};

} // namespace kiln::cuda
