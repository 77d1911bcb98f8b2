// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/EvaluateOp.h"

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {

Tensor evaluateOp(const Node &node, std::span<const Tensor *const> operands, const TensorShape &shape) {
  const OpCall call(node, operands, shape);
  for (const Tensor *operand : operands)
    if (!operand || operand->values.size() != operand->errors.size() || elementCount(operand->shape) != operand->size())
      throw std::runtime_error(std::string(nameOf(node.op)) + " requires operands with a value for each element");
  switch (node.op) {
  case Op::add:
  case Op::sub:
  case Op::mul:
  case Op::div:
  case Op::maximum:
  case Op::less:
  case Op::where:
  case Op::exp:
  case Op::log:
  case Op::sqrt:
  case Op::tanh:
  case Op::sigmoid:
  case Op::relu:
  case Op::gelu:
  case Op::gelu_tanh:
  case Op::silu:
    return evaluatePointwise(call);
  case Op::mean:
  case Op::max:
  case Op::sum:
  case Op::argmax:
    return evaluateReduction(call);
  case Op::softmax:
  case Op::log_softmax:
  case Op::layer_norm:
  case Op::rms_norm:
    return evaluateNorm(call);
  case Op::linear:
  case Op::matmul:
    return evaluateContraction(call);
  case Op::conv2d:
    return evaluateConv2d(call);
  case Op::max_pool2d:
  case Op::avg_pool2d:
  case Op::resize_bilinear:
    return evaluateImage(call);
  case Op::attention:
  case Op::attention_scores:
    return evaluateAttention(call);
  case Op::reshape:
  case Op::expand:
  case Op::transpose:
  case Op::concat:
  case Op::slice:
  case Op::dropout:
    return evaluateMovement(call);
  case Op::constant:
  case Op::embedding:
  case Op::gather:
  case Op::positions:
  case Op::sinusoidal:
    return evaluateLookup(call);
  default:
    throw std::runtime_error(std::string("an op that is evaluated alone requires no region and no state: got ") +
                             nameOf(node.op));
  }
}

} // namespace kiln::interpreter
