// SPDX-License-Identifier: Apache-2.0
//
// Runs a lowered statement, as it is before code is generated of it, without computing: an abstract interpreter that
// knows for every element of every buffer whether it was written.
#pragma once

#include "targets/halide/MemoryModel.h"
#include <map>

namespace kiln::halide {

/// A buffer that the statement is given: dense, from 0.
struct GivenBuffer {
  std::string name;  // in the statement
  std::string title; // in words, "argument 1", "result 0"
  bool isResult = false;
  Halide::Type type;
  std::vector<int64_t> shape; // outermost first
};

struct StatementRun {
  std::vector<GivenBuffer> buffers;
  std::map<std::string, int64_t> scalars;
  /// Names of an argument and of the result that takes its memory; empty: none does.
  std::string overwritten, overwriting;
  std::string prefix; // of names, left out of words
  uint64_t seed = 0;  // of integers given and of what would follow from floats
  int64_t stepLimit = 1 << 24;
};

/// What is wrong, in words; empty: nothing.
/// 1. No lane that takes part loads or stores outside of its buffer, or after it was freed.
/// 2. Every element of a result is written once; it is not read before, and follows from nothing that was not written.
///    The same holds for indices, conditions and bounds of loops. Else values may be undefined.
/// 3. An element of an argument is not read after a result has overwritten it.
/// 4. Iterations of a parallel loop neither write the same element nor read what another one writes.
/// 5. Indices are aligned as loads and stores promise.
/// 6. No float is cast to an unsigned integer: Halide makes that of a cast to a signed one whose bits are then used.
/// Throws StepsExceeded, and Halide's InternalError for a node that it does not know.
std::string checkStatement(const Halide::Internal::Stmt &stmt, const StatementRun &run);

/// A lowering pass that keeps the statement and changes nothing.
class KeepStatement : public Halide::Internal::IRMutator {
public:
  explicit KeepStatement(Halide::Internal::Stmt &kept) : kept(kept) {}
  using IRMutator::mutate;
  Halide::Internal::Stmt mutate(const Halide::Internal::Stmt &stmt) override { return kept = stmt; }

private:
  Halide::Internal::Stmt &kept;
};

} // namespace kiln::halide
