// SPDX-License-Identifier: Apache-2.0
//
// Converts an op of the kiln dialect back to a node of a graph, the inverse of the frontend's ImportNode.cpp, so that
// the interpreter of graphs evaluates ops of any stage.
#pragma once

#include <optional>

#include "kiln/graph.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace kiln::verify {

/// Returns the op, its element type and its attributes; no shape, operands or scope. Returns nothing for an op that a
/// graph does not have, and for those that are no computation: parameters, loops, states.
std::optional<Node> nodeOf(mlir::Operation *op);

/// Returns the element type. Throws std::runtime_error for a type that no tensor of a graph has.
ElementType elementTypeOf(mlir::Type type);

} // namespace kiln::verify
