// SPDX-License-Identifier: Apache-2.0
//
// What the functions of the ops share: their operands and attributes, the checks that turn a malformed graph into an
// exception, and walks over elements.
#pragma once

#include <span>

#include "compiler/interpreter/Arithmetic.h"

namespace kiln::interpreter {

/// One op with the values of its operands and the extents that the graph states for its result.
class OpCall {
public:
  OpCall(const Node &node, std::span<const Tensor *const> operands, const TensorShape &shape)
      : node(node), operands(operands), shape(shape) {}

  const Tensor &operator[](std::size_t operand) const { return *operands[operand]; }
  std::size_t count() const { return operands.size(); }
  const Attributes &attributes() const { return node.attributes; }

  /// Zeros of the extents and the type that the operands imply; they must be what the graph states.
  Tensor result(const TensorShape &implied, ElementType element) const;

  /// Throws std::runtime_error: "matmul requires RULE: got f32[2, 3] and f32[4, 5] for f32[2, 5]".
  [[noreturn]] void fail(const std::string &rule) const;
  void require(bool holds, const char *rule) const {
    if (!holds)
      fail(rule);
  }
  /// `fewest` to `most` operands, of which those from `first` on have the element type of the first of them.
  void requireOperands(std::size_t fewest, std::size_t most) const;
  void requireSameElements(std::size_t first = 0) const;
  void requireFloating(std::size_t operand = 0) const;
  void requireRank(std::size_t operand, int least) const;
  void requireIntegers(std::size_t operand) const;
  /// The axis, which is one of the operand's.
  int axis(std::size_t operand = 0) const;

  const Node &node;
  std::span<const Tensor *const> operands;
  const TensorShape &shape;
};

/// Elements as [outer, extent, inner] around one axis.
struct Lines {
  Lines(const TensorShape &shape, int axis);
  std::int64_t at(std::int64_t o, std::int64_t k, std::int64_t i) const { return (o * extent + k) * inner + i; }
  std::int64_t outer = 1, extent = 1, inner = 1;
};

/// The next index in row-major order.
void advance(TensorShape &index, const TensorShape &shape);
std::int64_t flatten(const TensorShape &index, const TensorShape &shape);

/// Extents aligned at the last, equal or 1 as NumPy has it; false if they are not.
bool broadcast(const TensorShape &a, const TensorShape &b, TensorShape &result);
/// Where an element of the broadcast `shape` is read in a tensor of the shape `own`.
std::int64_t broadcastOffset(const TensorShape &own, const TensorShape &shape, std::int64_t flat);

// By family; each takes the ops that its file names.
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

/// How many windows an axis has: floor((extent + 2p - d (k - 1) - 1) / s) + 1.
std::int64_t windowCount(const OpCall &call, std::int64_t extent, std::int64_t kernel, int stride, int padding,
                         int dilation);

} // namespace kiln::interpreter
