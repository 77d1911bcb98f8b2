// SPDX-License-Identifier: Apache-2.0
//
// The results of calls of a module's entries, and how far two such results may differ.
#pragma once

#include "compiler/verify/RandomCalls.h"

namespace kiln::verify {

/// The results of all calls, and the states and the written weights that each session leaves.
struct Outcome {
  std::vector<std::vector<std::vector<SharedTensor>>> results; // by session and call
  std::vector<std::map<std::string, SharedTensor>> states;     // by session
  std::vector<std::map<std::string, SharedTensor>> written;    // by session

  /// Calls `function` with each tensor of this outcome and its counterpart; both outcomes have the same structure.
  void zip(const Outcome &other, llvm::function_ref<void(SharedTensor &, const SharedTensor &)> function);
};

/// Returns the tensor with each float moved up or down by a rounding of f32. Perturbed constants, weights and inputs
/// show how much a result depends on such roundings.
Tensor perturbed(const Tensor &tensor);

/// Returns `expected` with the bounds within which two evaluations in the same arithmetic agree. The bounds of correct
/// implementations add up the worst case of every operation, and say little after many layers. Two evaluations in f64
/// differ at most by roundings of constants to f32, as in constant folding: here by no more than 64 times the largest
/// difference in the tensor to `moved`, which is the same with perturbed numbers.
Outcome narrowed(const Outcome &expected, const Outcome &moved);

/// Returns the values of one with the bounds of the other.
Outcome withBounds(const Outcome &values, const Outcome &bounds);

/// Returns "\"logits\" of forward: element 17 was 0.5, is 0.25 (tokens=3)", or nothing.
std::optional<std::string> findDifference(const Outcome &expected, const Outcome &actual, const RandomCalls &calls,
                                          mlir::ModuleOp module, std::size_t &elements, std::size_t &undetermined);

} // namespace kiln::verify
