// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/EvaluateOp.h"

#include "compiler/interpreter/OpCall.h"

#include <algorithm>
#include <cmath>

namespace kiln::interpreter {

[[noreturn]] static void refuse(Op op) {
  throw std::runtime_error(std::string("operation: has a region or a state; expected neither, got ") + name_of(op));
}

static Tensor evaluateUnrounded(const OpCall &call) {
  const Node &node = call.node;
  switch (family_of(node.op)) {
  case Family::unary:
    return evaluateUnary(call);
  case Family::binary:
  case Family::comparison:
  case Family::logic:
  case Family::selection:
  case Family::conversion:
    return evaluatePointwise(call);
  case Family::reduction:
    return evaluateReduction(call);
  case Family::norm:
    return evaluateNorm(call);
  case Family::contraction:
    return evaluateContraction(call);
  case Family::convolution:
    return evaluateConv2d(call);
  case Family::image:
    return evaluateImage(call);
  case Family::attention:
    return evaluateAttention(call);
  case Family::movement:
    return evaluateMovement(call);
  case Family::source:
    if (node.op == Op::constant)
      return evaluateLookup(call);
    break;
  case Family::lookup:
    return evaluateLookup(call);
  case Family::custom:
    throw std::runtime_error("custom: function of the program; expected an operation of the language");
  case Family::loop:
  case Family::state:
    break;
  }
  refuse(node.op);
}

Tensor evaluateOp(const Node &node, std::span<const Tensor *const> operands, const TensorShape &shape) {
  if (!is_known(node.op))
    refuse(node.op);
  for (const Tensor *operand : operands)
    if (!operand || operand->values.size() != operand->errors.size() || elementCount(operand->shape) != operand->size())
      throw std::runtime_error(std::string(name_of(node.op)) +
                               ": values of an operand are missing; expected one for each element");
  Tensor result = evaluateUnrounded(OpCall(node, operands, shape));
  const Family family = family_of(node.op);
  const bool isChosen = family == Family::movement || family == Family::lookup || family == Family::selection;
  if (half_float(result.element) && !isChosen)
    for (std::int64_t i = 0; i < result.size(); ++i)
      result.set(i, rounded(result.element, result.at(i)));
  return result;
}

} // namespace kiln::interpreter
