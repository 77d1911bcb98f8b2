// SPDX-License-Identifier: Apache-2.0
//
// Compares the gradients among an entry's results (kiln.gradient_of) with central differences of its first result, the
// loss, along random directions of the weights.
#pragma once

#include "compiler/verify/RandomCalls.h"

namespace kiln::verify {

struct GradientCheck {
  std::string difference;   // of the first wrong gradient; empty: all are right
  std::size_t compared = 0; // derivatives
  std::size_t kinks = 0;    // derivatives that central differences do not have
};

/// Whether central differences approximate the gradients of the entry as it is before differentiation: nothing is
/// rounded in steps, no gradient is stopped or sent to another process, and no custom function has a stand-in, whose
/// derivative is another one's.
bool hasSmoothLoss(mlir::func::FuncOp entry);

/// Checks the gradients of one call. `isJoint`: along one direction of all weights, instead of one for each.
GradientCheck checkGradients(mlir::func::FuncOp entry, const EntryCall &call, RandomWeights &weights, bool isJoint);

} // namespace kiln::verify
