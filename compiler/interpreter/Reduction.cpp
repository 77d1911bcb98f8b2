// SPDX-License-Identifier: Apache-2.0
//
// Reductions along one axis, which is dropped: mean, max, sum, argmax; and running sums, which keep it.
#include <cmath>

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {
namespace {

/// The elements along the axis, for fixed other indices.
using Line = std::vector<Value>;

/// Accumulates a sum, returning each partial sum.
class RunningSum {
public:
  explicit RunningSum(ElementType element, const Arithmetic &arithmetic) : element(element), sum(arithmetic) {}

  Value add(Value x) {
    if (floating(element)) {
      sum.add(x);
      return sum.result();
    }
    whole += static_cast<std::int64_t>(x.value);
    isDetermined &= x.isDetermined();
    return isDetermined ? exact(wrap(element, whole)) : undetermined(wrap(element, whole));
  }

private:
  ElementType element;
  Sum sum;
  std::int64_t whole = 0; // sums at most 2^28 numbers of 32 bits
  bool isDetermined = true;
};

Value sumOf(ElementType element, const Arithmetic &arithmetic, const Line &line) {
  RunningSum sum(element, arithmetic);
  Value last = exact(0);
  for (Value x : line)
    last = sum.add(x);
  return last;
}

Value maximumOf(const Arithmetic &arithmetic, const Line &line) {
  Value most = line[0];
  for (Value x : line)
    most = arithmetic.maximum(most, x);
  return most;
}

/// Returns the first of equal maxima; NaN is larger than any number. Undetermined if another element may be as large.
Value argmaxOf(const Line &line) {
  std::size_t best = 0;
  bool isDetermined = true;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const Value x = line[i], most = line[best];
    isDetermined &= x.isDetermined();
    if (!std::isnan(most.value) && (std::isnan(x.value) || x.value > most.value))
      best = i;
  }
  const Value most = line[best];
  if (!isDetermined)
    return undetermined(static_cast<double>(best));
  for (std::size_t i = 0; i < line.size() && !std::isnan(most.value); ++i) {
    const bool isEqual = line[i].value == most.value && line[i].error == 0 && most.error == 0;
    if (i != best && !isEqual && line[i].value + line[i].error >= most.value - most.error)
      return undetermined(static_cast<double>(best));
  }
  return exact(static_cast<double>(best));
}

/// The mean of the differences from the first element, plus that element. The error of that element only contributes as
/// that of any other: it is subtracted as often as it is added.
Value shiftedMeanOf(const Arithmetic &arithmetic, const Line &line) {
  const Value first = exact(line.front().value);
  Sum sum(arithmetic);
  for (Value x : line)
    sum.add(arithmetic.sub(x, first));
  return arithmetic.add(first, arithmetic.div(sum.result(), exact(static_cast<double>(line.size()))));
}

Value reduce(const OpCall &call, const Arithmetic &arithmetic, const Line &line) {
  const ElementType element = call[0].element;
  switch (call.node.op) {
  case Op::mean:
    if (call.attributes().shifted)
      return shiftedMeanOf(arithmetic, line);
    return arithmetic.div(sumOf(element, arithmetic, line), exact(static_cast<double>(line.size())));
  case Op::sum:
    return sumOf(element, arithmetic, line);
  case Op::max:
    return maximumOf(arithmetic, line);
  default:
    return argmaxOf(line);
  }
}

} // namespace

Tensor evaluateCumsum(const OpCall &call) {
  call.requireOperands(1, 1);
  const Tensor &x = call[0];
  call.require(x.element != ElementType::boolean, "wrong element type; expected numbers as operands");
  const Lines lines(x.shape, call.axis());
  Tensor result = call.result(x.shape, x.element);
  const Arithmetic arithmetic(x.element);
  for (std::int64_t o = 0; o < lines.outer; ++o)
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      RunningSum sum(x.element, arithmetic);
      for (std::int64_t k = 0; k < lines.extent; ++k) {
        const std::int64_t at = lines.at(o, call.attributes().reverse ? lines.extent - 1 - k : k, i);
        result.set(at, sum.add(x.at(at)));
      }
    }
  return result;
}

Tensor evaluateReduction(const OpCall &call) {
  call.requireOperands(1, 1);
  const Tensor &x = call[0];
  call.require(x.element != ElementType::boolean, "wrong element type; expected numbers as operands");
  if (call.node.op == Op::mean)
    call.requireFloating();
  const int axis = call.axis();
  const Lines lines(x.shape, axis);
  TensorShape shape = x.shape;
  shape.erase(shape.begin() + axis);
  Tensor result = call.result(shape, call.node.op == Op::argmax ? ElementType::i32 : x.element);
  const Arithmetic arithmetic(x.element);
  Line line(static_cast<std::size_t>(lines.extent));
  for (std::int64_t o = 0; o < lines.outer; ++o)
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      for (std::int64_t k = 0; k < lines.extent; ++k)
        line[k] = x.at(lines.at(o, k, i));
      result.set(o * lines.inner + i, reduce(call, arithmetic, line));
    }
  return result;
}

} // namespace kiln::interpreter
