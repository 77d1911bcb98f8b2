// SPDX-License-Identifier: Apache-2.0
//
// Shared by the functions that evaluate ops: operands and attributes, checks that turn a malformed graph into an
// exception, and iteration over elements.
#pragma once

#include <span>

#include "compiler/interpreter/Arithmetic.h"

namespace kiln::interpreter {

/// One op with the values of its operands and the dimensions that the graph states for its result.
class OpCall {
public:
  OpCall(const Node &node, std::span<const Tensor *const> operands, const TensorShape &shape)
      : node(node), operands(operands), shape(shape) {}

  const Tensor &operator[](std::size_t operand) const { return *operands[operand]; }
  std::size_t count() const { return operands.size(); }
  const Attributes &attributes() const { return node.attributes; }

  /// Returns zeros of the implied dimensions and type; the dimensions must be those that the graph states.
  Tensor result(const TensorShape &implied, ElementType element) const;

  /// Throws std::runtime_error: "matmul: PROBLEM, got f32[2, 3] and f32[4, 5] for f32[2, 5]". The problem ends with
  /// what is expected: "inner dimensions differ; expected equal ones".
  [[noreturn]] void fail(const std::string &problem) const;
  void require(bool holds, const char *problem) const {
    if (!holds)
      fail(problem);
  }
  /// Checks the number of operands, and that operands from `first` on have one element type.
  void requireOperands(std::size_t fewest, std::size_t most) const;
  void requireSameElements(std::size_t first = 0) const;
  void requireFloating(std::size_t operand = 0) const;
  void requireRank(std::size_t operand, int least) const;
  void requireIntegers(std::size_t operand) const;
  /// Returns the axis, which must be one of the operand's.
  int axis(std::size_t operand = 0) const;

  const Node &node;
  std::span<const Tensor *const> operands;
  const TensorShape &shape;
};

/// Views elements as [outer, extent, inner] around one axis.
struct Lines {
  Lines(const TensorShape &shape, int axis);
  std::int64_t at(std::int64_t o, std::int64_t k, std::int64_t i) const { return (o * extent + k) * inner + i; }
  std::int64_t outer = 1, extent = 1, inner = 1;
};

/// Advances to the next index in row-major order.
void advance(TensorShape &index, const TensorShape &shape);
std::int64_t flatten(const TensorShape &index, const TensorShape &shape);

/// Broadcasts shapes aligned at the last dimension, equal or 1 as in NumPy; returns false if they do not match.
bool broadcast(const TensorShape &a, const TensorShape &b, TensorShape &result);
/// Returns the offset in a tensor of the shape `own` of an element of the broadcast `shape`.
std::int64_t broadcastOffset(const TensorShape &own, const TensorShape &shape, std::int64_t flat);

/// Returns a unary function of one number.
Value evaluateUnary(Op op, Value x, const Arithmetic &arithmetic);

// By family; each function evaluates the ops that its file names.
Tensor evaluateUnary(const OpCall &call);
Tensor evaluatePointwise(const OpCall &call);
Tensor evaluateReduction(const OpCall &call);
Tensor evaluateCumsum(const OpCall &call);
Tensor evaluateNorm(const OpCall &call);
Tensor evaluateContraction(const OpCall &call);
Tensor evaluateConv2d(const OpCall &call);
Tensor evaluateImage(const OpCall &call);
Tensor evaluateAttention(const OpCall &call);
Tensor evaluateMovement(const OpCall &call);
Tensor evaluateLookup(const OpCall &call);
Tensor evaluateArgsort(const OpCall &call);
Tensor evaluateIndexAdd(const OpCall &call);

/// Returns the number of windows along an axis: floor((extent + 2p - d (k - 1) - 1) / s) + 1.
std::int64_t windowCount(const OpCall &call, std::int64_t extent, std::int64_t kernel, int stride, int padding,
                         int dilation);

} // namespace kiln::interpreter
