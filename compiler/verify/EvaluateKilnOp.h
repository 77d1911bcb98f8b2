// SPDX-License-Identifier: Apache-2.0
//
// One op of the kiln dialect on values with bounds: those that a graph has as the interpreter of graphs does it, and
// those that only the compiler makes (kiln.sinusoid, kiln.panel_moments, kiln.normal_cdf, products with a transposed
// operand, norms with moments, rows of int8 and products with them).
#pragma once

#include "compiler/interpreter/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

namespace kiln::verify {

using interpreter::Tensor;
using interpreter::TensorShape;

/// The results. `shapes`: their extents, as the types state them. Throws std::runtime_error for an op that is no
/// computation on tensors, and for operands that it cannot have.
std::vector<Tensor> evaluateKilnOp(mlir::Operation *op, llvm::ArrayRef<const Tensor *> operands,
                                   llvm::ArrayRef<TensorShape> shapes);

/// The elements of a constant. Throws std::runtime_error for an attribute that holds none.
Tensor tensorOf(mlir::ElementsAttr values);

} // namespace kiln::verify
