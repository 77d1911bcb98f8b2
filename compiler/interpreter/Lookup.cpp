// SPDX-License-Identifier: Apache-2.0
//
// Constants, positions, their sines and cosines, and table look-ups by index: constant, positions, sinusoidal,
// embedding, gather. An index outside of its table is clamped.
#include <algorithm>
#include <cmath>
#include <vector>

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

/// Returns the frequency of each pair of columns, in radians.
std::vector<double> pairFrequencies(const Attributes &attributes, std::int64_t width) {
  if (!attributes.values.empty())
    return attributes.values;
  std::vector<double> frequencies;
  for (std::int64_t d = 0; d < width; d += 2)
    frequencies.push_back(std::pow(attributes.base, -static_cast<double>(d) / static_cast<double>(width)));
  return frequencies;
}

/// sin or cos of a position times a frequency. An f32 position is split into its whole part, for which there is the
/// bound of i32, and a fraction, whose product with the frequency is rounded twice.
Value sinusoid(Value position, bool isWhole, double frequency, bool isCosine) {
  if (!isWhole && !(std::abs(position.value) < 0x1p31))
    return position.error == 0 ? exact(std::nan("")) : undetermined();
  const double angle = position.value * frequency;
  const double value = isCosine ? std::cos(angle) : std::sin(angle);
  if (!position.isDetermined() || (!isWhole && std::abs(position.value) + position.error >= 0x1p31))
    return undetermined(value);
  const double error = sinusoidalError(static_cast<std::int64_t>(position.value));
  return {value, isWhole ? error : error + frequency * (0x1p-22 + position.error)};
}

/// y[t, 2k] = sin(t[axis of k] * frequency of k), y[t, 2k+1] = cos of the same argument.
Tensor evaluateSinusoidal(const OpCall &call) {
  call.requireOperands(1, 1);
  const Tensor &positions = call[0];
  const Attributes &attributes = call.attributes();
  const bool hasAxes = !attributes.pair_axes.empty(), isWhole = positions.element == ElementType::i32;
  call.require(isWhole || positions.element == ElementType::f32, "wrong positions; expected i32 or f32");
  call.require(positions.rank() >= 1 + hasAxes && !call.shape.empty(),
               "wrong ranks; expected positions of rank 1 or more, and an axis for those of the pairs");
  const std::int64_t width = call.shape.back();
  call.require(width % 2 == 0 && (!attributes.values.empty() || attributes.base > 1),
               "wrong width or base; expected an even width and a base above 1");
  const std::vector<double> frequencies = pairFrequencies(attributes, width);
  call.require(static_cast<std::int64_t>(frequencies.size()) == width / 2 &&
                   (!hasAxes || attributes.pair_axes.size() == frequencies.size()),
               "wrong number of frequencies or axes; expected one for each pair");
  TensorShape places(positions.shape.begin() + hasAxes, positions.shape.end());
  const std::int64_t count = elementCount(places);
  places.push_back(width);
  Tensor result = call.result(places, ElementType::f32);
  for (std::int64_t t = 0; t < count; ++t)
    for (std::int64_t d = 0; d < width; ++d) {
      const auto pair = static_cast<std::size_t>(d / 2);
      const std::int64_t axis = hasAxes ? attributes.pair_axes[pair] : 0;
      call.require(axis >= 0 && (axis + 1) * count <= positions.size(), "wrong axis; expected one of the positions");
      result.set(t * width + d, sinusoid(positions.at(axis * count + t), isWhole, frequencies[pair], d % 2 == 1));
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
  case Op::argsort:
    return evaluateArgsort(call);
  case Op::index_add:
    return evaluateIndexAdd(call);
  default:
    return evaluateGather(call);
  }
}

} // namespace kiln::interpreter
