// SPDX-License-Identifier: Apache-2.0
//
// An abstract interpreter for a lowered statement, as it is before code generation. It computes no floats, but records
// for every element of every buffer whether it was written.
#pragma once

#include "targets/halide/check/MemoryModel.h"
#include <map>

namespace kiln::halide {

/// An argument or result of the statement: a dense buffer that starts at 0.
struct GivenBuffer {
  std::string name;  // in the statement
  std::string title; // in messages: "argument 1", "result 0"
  bool isResult = false;
  Halide::Type type;
  std::vector<int64_t> shape; // outermost first
};

struct StatementRun {
  std::vector<GivenBuffer> buffers;
  std::map<std::string, int64_t> scalars;
  /// Names of an argument and of the result that takes its memory; empty if none does.
  std::string overwritten, overwriting;
  std::string prefix; // prefix of names, left out of messages
  uint64_t seed = 0;  // seed of integer inputs, and of integers that depend on floats
  int64_t stepLimit = 1 << 24;
};

/// Returns what is wrong, or an empty string.
/// 1. No active lane loads or stores outside of its buffer, or after the buffer was freed.
/// 2. Every element of a result is written once. It is not read before, and depends on no element that was not written.
///    Neither do indices, conditions and bounds of loops. Other values may be undefined.
/// 3. An element of an argument is not read after a result has overwritten it.
/// 4. Iterations of a parallel loop neither write the same element nor read what another one writes.
/// 5. Indices are aligned as loads and stores promise.
/// 6. No float is cast to an unsigned integer: Halide produces that from a cast to a signed one whose bits are then
///    used.
/// Throws StepsExceeded, and Halide's InternalError for a node that it does not know.
std::string checkStatement(const Halide::Internal::Stmt &stmt, const StatementRun &run);

/// A lowering pass that keeps a copy of the statement and does not change it.
class KeepStatement : public Halide::Internal::IRMutator {
public:
  explicit KeepStatement(Halide::Internal::Stmt &kept) : kept(kept) {}
  using IRMutator::mutate;
  Halide::Internal::Stmt mutate(const Halide::Internal::Stmt &stmt) override { return kept = stmt; }

private:
  Halide::Internal::Stmt &kept;
};

} // namespace kiln::halide
