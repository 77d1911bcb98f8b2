// SPDX-License-Identifier: Apache-2.0
//
// linalg on tensors, one element after the other in the order of the loops: one of the results that a compiled kernel
// may give. Values are those of f32; they have no bounds.
#pragma once

#include "compiler/verify/ScalarProgram.h"

namespace kiln::verify {

/// The results of a linalg.generic. `operands`: its inputs, then its outputs. Throws std::runtime_error where the maps
/// leave a tensor, or extents of a loop differ.
std::vector<Tensor> evaluateGeneric(mlir::linalg::GenericOp op, llvm::ArrayRef<const Tensor *> operands,
                                    const Outside &outside);

} // namespace kiln::verify
