// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops, whose dimensions broadcast as in NumPy.
#include <algorithm>
#include <cmath>

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {
namespace {

Value integerBinary(Op op, ElementType element, Value a, Value b) {
  const auto x = static_cast<std::int64_t>(a.value), y = static_cast<std::int64_t>(b.value);
  double result = 0;
  switch (op) {
  case Op::add:
    result = wrap(element, x + y);
    break;
  case Op::sub:
    result = wrap(element, x - y);
    break;
  case Op::mul:
    result = wrap(element, x * y);
    break;
  case Op::div: // -2^31 / -1 wraps to itself
    result = y == 0 ? 0 : wrap(element, x / y);
    break;
  case Op::minimum:
    result = static_cast<double>(std::min(x, y));
    break;
  case Op::maximum:
    result = static_cast<double>(std::max(x, y));
    break;
  default:
    throw std::runtime_error(std::string(name_of(op)) + " is not known of integers");
  }
  return a.isDetermined() && b.isDetermined() ? exact(result) : undetermined(result);
}

Value floatBinary(Op op, const Arithmetic &arithmetic, Value a, Value b) {
  // A simplifier may fold x - x to 0 and x / x to 1 for any x.
  const bool mayCancel =
      op != Op::maximum && op != Op::minimum && op != Op::mul && !std::isfinite(a.value) && !std::isfinite(b.value);
  if (mayCancel && std::isnan(op == Op::div ? a.value / b.value : a.value + (op == Op::sub ? -b.value : b.value)))
    return undetermined(std::numeric_limits<double>::quiet_NaN());
  switch (op) {
  case Op::add:
    return arithmetic.add(a, b);
  case Op::sub:
    return arithmetic.sub(a, b);
  case Op::mul:
    return arithmetic.mul(a, b);
  case Op::div:
    return arithmetic.div(a, b);
  case Op::maximum:
    return arithmetic.maximum(a, b);
  case Op::minimum:
    return arithmetic.minimum(a, b);
  default:
    throw std::runtime_error(std::string(name_of(op)) + " is not known of floats");
  }
}

/// Whether a < b; undetermined where the errors are as large as the difference. False for NaN.
Value lessThan(Value a, Value b) {
  const double result = a.value < b.value;
  if (!a.isDetermined() || !b.isDetermined())
    return undetermined(result);
  if (std::isnan(a.value) || std::isnan(b.value) || a.value == b.value)
    return a.error + b.error == 0 ? exact(result) : undetermined(result);
  return std::abs(a.value - b.value) > a.error + b.error ? exact(result) : undetermined(result);
}

/// Whether a == b; undetermined where the errors are as large as the difference. False for NaN.
Value areEqual(Value a, Value b) {
  const double result = a.value == b.value;
  if (!a.isDetermined() || !b.isDetermined())
    return undetermined(result);
  if (a.error + b.error == 0 || std::isnan(a.value) || std::isnan(b.value))
    return exact(result);
  return std::abs(a.value - b.value) > a.error + b.error ? exact(result) : undetermined(result);
}

Value compare(Op op, Value a, Value b) {
  const Value less = lessThan(a, b);
  if (op == Op::less)
    return less;
  const Value equal = areEqual(a, b);
  if (op == Op::equal)
    return equal;
  const double either = less.value + equal.value > 0;
  return less.isDetermined() && equal.isDetermined() ? exact(either) : undetermined(either);
}

Value logic(Op op, Value a, Value b) {
  const bool x = a.value != 0, y = b.value != 0;
  const double result = op == Op::logical_and ? x && y : op == Op::logical_or ? x || y : x != y;
  return a.isDetermined() && b.isDetermined() ? exact(result) : undetermined(result);
}

/// An i32 is rounded to f32 first, for any result type. Conversion to i32 and i8 truncates, after clamping to the
/// nearest f32 in range; NaN may give anything. Undetermined where an integer is within the error.
Value convert(ElementType to, Value x) {
  if (floating(to)) {
    const double rounded = static_cast<double>(static_cast<float>(x.value));
    return x.error == 0 ? exact(roundTo(to, rounded)) : Value{x.isDetermined() ? rounded : x.value, x.error};
  }
  const bool isNarrow = to == ElementType::i8;
  const double least = isNarrow ? -128 : -2147483648.0, most = isNarrow ? 127 : 2147483520.0;
  if (!x.isDetermined() || std::isnan(x.value))
    return undetermined(0);
  auto whole = [=](double value) { return std::trunc(std::clamp(value, least, most)); };
  const double result = whole(x.value);
  return whole(x.value - x.error) == whole(x.value + x.error) ? exact(result) : undetermined(result);
}

Tensor evaluateCast(const OpCall &call) {
  call.requireOperands(1, 1);
  const ElementType to = call.node.element;
  call.require(floating(to) || to == ElementType::i32 || to == ElementType::i8,
               "wrong element type of the result; expected f32, f16, bf16, i32 or i8");
  Tensor result = call.result(call[0].shape, to);
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.set(i, convert(to, call[0].at(i)));
  return result;
}

/// A value that is not selected has no effect. If either may be selected, any number between them is correct.
Value choose(Value condition, Value a, Value b) {
  const Value chosen = condition.value != 0 ? a : b;
  if (condition.isDetermined())
    return chosen;
  if (!a.isDetermined() || !b.isDetermined())
    return undetermined(chosen.value);
  if (std::isnan(a.value) && std::isnan(b.value))
    return chosen;
  if (a.value == b.value)
    return {chosen.value, std::max(a.error, b.error)};
  if (!std::isfinite(a.value) || !std::isfinite(b.value))
    return undetermined(chosen.value);
  return {chosen.value, std::abs(a.value - b.value) + std::max(a.error, b.error)};
}

Tensor evaluateBinary(const OpCall &call) {
  call.requireOperands(2, 2);
  call.requireSameElements();
  const Tensor &a = call[0], &b = call[1];
  const Family family = family_of(call.node.op);
  call.require((a.element == ElementType::boolean) == (family == Family::logic),
               "wrong element types; expected numbers, or for logic booleans");
  TensorShape shape;
  call.require(broadcast(a.shape, b.shape, shape), "dimensions differ; expected equal ones or 1");
  const bool floats = floating(a.element);
  const Arithmetic arithmetic(a.element);
  Tensor result = call.result(shape, family == Family::comparison ? ElementType::boolean : a.element);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const Value x = a.at(broadcastOffset(a.shape, shape, i)), y = b.at(broadcastOffset(b.shape, shape, i));
    result.set(i, family == Family::comparison ? compare(call.node.op, x, y)
                  : family == Family::logic    ? logic(call.node.op, x, y)
                  : floats                     ? floatBinary(call.node.op, arithmetic, x, y)
                                               : integerBinary(call.node.op, a.element, x, y));
  }
  return result;
}

Tensor evaluateWhere(const OpCall &call) {
  call.requireOperands(3, 3);
  call.requireSameElements(1);
  const Tensor &condition = call[0], &a = call[1], &b = call[2];
  call.require(condition.element == ElementType::boolean, "wrong element type; expected a boolean condition");
  TensorShape both, shape;
  call.require(broadcast(a.shape, b.shape, both) && broadcast(condition.shape, both, shape),
               "dimensions differ; expected equal ones or 1");
  Tensor result = call.result(shape, a.element);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    Value chosen = choose(condition.at(broadcastOffset(condition.shape, shape, i)),
                          a.at(broadcastOffset(a.shape, shape, i)), b.at(broadcastOffset(b.shape, shape, i)));
    if (chosen.error > 0 && !floating(a.element)) // no integer is between two adjacent ones
      chosen = undetermined(chosen.value);
    result.set(i, chosen);
  }
  return result;
}

} // namespace

Tensor evaluatePointwise(const OpCall &call) {
  switch (family_of(call.node.op)) {
  case Family::selection:
    return evaluateWhere(call);
  case Family::conversion:
    return evaluateCast(call);
  default:
    return evaluateBinary(call);
  }
}

} // namespace kiln::interpreter
