// SPDX-License-Identifier: Apache-2.0
//
// Constants, positions, their sines and cosines, and table look-ups by index: constant, positions, sinusoidal,
// embedding, gather. An index outside of its table is clamped.
#include <algorithm>
#include <cmath>

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {
namespace {

Tensor evaluateConstant(const OpCall &call) {
  call.requireOperands(0, 0);
  return Tensor::of(call.node.element, call.shape, call.attributes().values);
}

Tensor evaluatePositions(const OpCall &call) {
  call.requireOperands(1, 1);
  Tensor result = call.result({call[0].shape[call.axis()]}, ElementType::i32);
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.set(i, exact(static_cast<double>(i)));
  return result;
}

/// y[t, 2k] = sin(t / base^(2k/D)), y[t, 2k+1] = cos of the same argument.
Tensor evaluateSinusoidal(const OpCall &call) {
  call.requireOperands(1, 1);
  call.requireIntegers(0);
  const Tensor &positions = call[0];
  call.require(positions.rank() == 1 && call.shape.size() == 2,
               "wrong ranks; expected positions of rank 1 and a result of rank 2");
  const std::int64_t width = call.shape[1];
  call.require(width % 2 == 0 && call.attributes().base > 1,
               "wrong width or base; expected an even width and a base above 1");
  Tensor result = call.result({positions.shape[0], width}, ElementType::f32);
  for (std::int64_t t = 0; t < positions.size(); ++t)
    for (std::int64_t d = 0; d < width; ++d) {
      const double exponent = static_cast<double>(d / 2 * 2) / static_cast<double>(width);
      const double angle = positions.values[t] / std::pow(call.attributes().base, exponent);
      const double value = d % 2 ? std::cos(angle) : std::sin(angle);
      const double error = sinusoidalError(static_cast<std::int64_t>(positions.values[t]));
      result.set(t * width + d, positions.at(t).isDetermined() ? Value{value, error} : undetermined(value));
    }
  return result;
}

/// Returns the index clamped to [0, extent).
std::int64_t clamped(double index, std::int64_t extent) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(index), 0, extent - 1);
}

/// y[a..., i..., b...] = table[a..., indices[i...], b...]
Tensor takeRows(const OpCall &call, const Tensor &table, const Tensor &indices, int axis) {
  TensorShape shape(table.shape.begin(), table.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), table.shape.begin() + axis + 1, table.shape.end());
  Tensor result = call.result(shape, table.element);
  const Lines from(table.shape, axis);
  std::int64_t flat = 0;
  for (std::int64_t o = 0; o < from.outer; ++o)
    for (std::int64_t k = 0; k < indices.size(); ++k)
      for (std::int64_t i = 0; i < from.inner; ++i, ++flat) {
        const Value taken = table.at(from.at(o, clamped(indices.values[k], from.extent), i));
        result.set(flat, indices.at(k).isDetermined() ? taken : undetermined(taken.value));
      }
  return result;
}

Tensor evaluateEmbedding(const OpCall &call) {
  call.requireOperands(2, 2);
  call.requireIntegers(0);
  call.require(call[1].rank() == 2, "wrong rank of the table; expected 2");
  return takeRows(call, call[1], call[0], 0);
}

Tensor evaluateGather(const OpCall &call) {
  call.requireOperands(2, 2);
  call.requireIntegers(1);
  return takeRows(call, call[0], call[1], call.axis());
}

} // namespace

Tensor evaluateLookup(const OpCall &call) {
  switch (call.node.op) {
  case Op::constant:
    return evaluateConstant(call);
  case Op::positions:
    return evaluatePositions(call);
  case Op::sinusoidal:
    return evaluateSinusoidal(call);
  case Op::embedding:
    return evaluateEmbedding(call);
  default:
    return evaluateGather(call);
  }
}

} // namespace kiln::interpreter
