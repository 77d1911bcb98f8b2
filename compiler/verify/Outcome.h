// SPDX-License-Identifier: Apache-2.0
//
// What calls of a module's entries give, and how far two of them may be from each other.
#pragma once

#include "compiler/verify/RandomCalls.h"

namespace kiln::verify {

/// The results of all calls, and the states that each session leaves.
struct Outcome {
  std::vector<std::vector<std::vector<SharedTensor>>> results; // by session and call
  std::vector<std::map<std::string, SharedTensor>> states;     // by session

  /// Calls `function` with each tensor of this one and its counterpart; both have the same.
  void zip(const Outcome &other, llvm::function_ref<void(SharedTensor &, const SharedTensor &)> function);
};

/// A number moved by a rounding of f32, up or down: constants, weights and inputs so moved show how much a result
/// depends on such roundings.
Tensor perturbed(const Tensor &tensor);

/// `expected` with the bounds that two evaluations of one arithmetic keep. Bounds of right implementations add up the
/// worst of every step and say little behind many layers. Two evaluations in f64 differ by roundings of constants to
/// f32 at most, as a fold does: here by no more than 64 times what `moved`, that is the same with perturbed numbers,
/// differs anywhere in the tensor.
Outcome narrowed(const Outcome &expected, const Outcome &moved);

/// The values of one, the bounds of the other.
Outcome withBounds(const Outcome &values, const Outcome &bounds);

/// "\"logits\" of forward: element 17 was 0.5, is 0.25 (tokens=3)", or nothing.
std::optional<std::string> findDifference(const Outcome &expected, const Outcome &actual, const RandomCalls &calls,
                                          mlir::ModuleOp module, std::size_t &elements, std::size_t &undetermined);

} // namespace kiln::verify
