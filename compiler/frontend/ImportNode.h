// SPDX-License-Identifier: Apache-2.0
//
// Imports a single node of a trace as an op of the same name.
#pragma once

#include "kiln/graph.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace kiln {

/// Returns the op for a node that is neither input, parameter, dropout, stop_gradient, a loop nor a loop's result.
/// Emits a diagnostic if the node has a wrong number of operands, or a constant a wrong number of values; the verifiers
/// check everything else.
mlir::FailureOr<mlir::Value> importNode(const Node &node, mlir::Location location, mlir::ValueRange operands,
                                        mlir::RankedTensorType type, mlir::OpBuilder &builder);

} // namespace kiln
