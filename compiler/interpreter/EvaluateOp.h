// SPDX-License-Identifier: Apache-2.0
//
// Evaluates one op of the language, as dsl/SPEC.md specifies it, on values with bounds. The op, its attributes and its
// operands may come from a graph or from another form of a model.
#pragma once

#include <span>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

/// Returns the result of one op that is neither a source (input, parameter, state) nor a loop and changes no state.
/// Only the op, the element type and the attributes of `node` are used.
///
/// `shape`: the dimensions of the result that the graph states. Those of reshape, expand, slice and resize_bilinear are
/// taken from it, all others are checked against those that the operands imply. Throws std::runtime_error for anything
/// that the language does not allow.
Tensor evaluateOp(const Node &node, std::span<const Tensor *const> operands, const TensorShape &shape);

} // namespace kiln::interpreter
