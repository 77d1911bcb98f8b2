// SPDX-License-Identifier: Apache-2.0
//
// Evaluates linalg on tensors, one element after the other in the order of the loops, which is one of the results that
// a compiled kernel may have. Values are f32 and have no error bounds.
#pragma once

#include "compiler/verify/ScalarProgram.h"

namespace kiln::verify {

/// Returns the results of a linalg.generic. `operands`: its inputs, then its outputs. Throws std::runtime_error if a
/// map leaves its tensor, or if the extents of a loop differ.
std::vector<Tensor> evaluateGeneric(mlir::linalg::GenericOp op, llvm::ArrayRef<const Tensor *> operands,
                                    const Outside &outside);

} // namespace kiln::verify
