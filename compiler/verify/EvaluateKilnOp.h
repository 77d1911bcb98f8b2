// SPDX-License-Identifier: Apache-2.0
//
// Evaluates one op of the kiln dialect on values with error bounds. The interpreter of graphs evaluates ops that a
// graph has. This file evaluates those that only the compiler makes (kiln.sinusoid, kiln.normal_cdf,
// matrix products with a transposed operand, rows of int8 and matrix products with them).
#pragma once

#include "compiler/interpreter/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

namespace kiln::verify {

using interpreter::Tensor;
using interpreter::TensorShape;

/// Returns the results. `shapes`: the extents of the results, as their types state them. Throws std::runtime_error for
/// an op that is not a computation on tensors, and for operands that it cannot have.
std::vector<Tensor> evaluateKilnOp(mlir::Operation *op, llvm::ArrayRef<const Tensor *> operands,
                                   llvm::ArrayRef<TensorShape> shapes);

/// Returns the elements of a constant. Throws std::runtime_error for an attribute that holds none.
Tensor tensorOf(mlir::ElementsAttr values);

} // namespace kiln::verify
