// SPDX-License-Identifier: Apache-2.0
//
// A single node of a trace as an op of the same name.
#pragma once

#include "kiln/graph.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace kiln {

/// The op for a node that is neither input, parameter, dropout, stop_gradient, a loop nor its result. Diagnostics if it
/// has not as many operands as its op, or a constant not as many values; everything else is left to the verifiers.
mlir::FailureOr<mlir::Value> importNode(const Node &node, mlir::Location location, mlir::ValueRange operands,
                                        mlir::RankedTensorType type, mlir::OpBuilder &builder);

} // namespace kiln
