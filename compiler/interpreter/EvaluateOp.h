// SPDX-License-Identifier: Apache-2.0
//
// One op of the language, as dsl/SPEC.md states it, on values with bounds. It takes an op, its attributes and the
// values of its operands, wherever these come from: a graph, or another form of a model.
#pragma once

#include <span>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

/// The result of one op that is no source of the caller's (input, parameter, state), no loop and changes no state. Of
/// `node` the op, the element type and the attributes count.
///
/// `shape`: the extents of the result that the graph states. Those of reshape, expand, slice and resize_bilinear come
/// from there, all others are checked against what the operands imply. Throws std::runtime_error for anything that the
/// language does not allow.
Tensor evaluateOp(const Node &node, std::span<const Tensor *const> operands, const TensorShape &shape);

} // namespace kiln::interpreter
