// SPDX-License-Identifier: Apache-2.0
//
// Unary functions of floats with the error bounds of dsl/SPEC.md. Most increase, so the bound of the result follows
// from the function at the ends of the operand's interval.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {
namespace {

class Unary : public Arithmetic {
public:
  explicit Unary(const Arithmetic &arithmetic) : Arithmetic(arithmetic) {}

  Value evaluate(Op op, Value x) const;

private:
  template <class Function> Value monotonic(Value x, Function function, double relative, double absolute) const;
  template <class Function> Value gated(Value x, Function function) const;
  template <class Function> Value periodic(Value x, Function function) const;
  Value exp(Value x) const;
  Value expm1(Value x) const;
  Value log(Value x) const;
  Value log1p(Value x) const;
  Value sqrt(Value x) const;
  Value softplus(Value x) const;
};

/// Evaluates a non-decreasing function at the ends of the interval.
template <class Function> Value Unary::monotonic(Value x, Function function, double relative, double absolute) const {
  const double result = function(x.value);
  if (!x.isDetermined())
    return undetermined(result);
  if (!std::isfinite(x.value))
    return exact(result);
  const double low = function(x.value - x.error), high = function(x.value + x.error);
  return settle(result,
                std::max(high - result, result - low) + relative * std::max(std::abs(low), std::abs(high)) + absolute);
}

/// x times a gate that increases from 0 to 1: the slope is below 1.13 everywhere, and the error of an implementation is
/// proportional to x. x (1 + g) / 2 loses digits to cancellation below 0, so the error does not shrink with the result.
template <class Function> Value Unary::gated(Value x, Function function) const {
  const double result = function(x.value);
  if (!x.isDetermined() || x.value == -std::numeric_limits<double>::infinity())
    return undetermined(result);
  if (!std::isfinite(x.value))
    return exact(x.value);
  return settle(result, 1.13 * x.error + 1.5 * this->function * (std::abs(x.value) + x.error) + tiny);
}

/// A sine or cosine: the slope is at most 1. An implementation reduces the argument with an absolute error.
template <class Function> Value Unary::periodic(Value x, Function function) const {
  const double result = function(x.value);
  if (!x.isDetermined())
    return undetermined(result);
  if (!std::isfinite(x.value) || x.isExactly(0))
    return exact(result);
  return settle(result, std::min(x.error, 2.0) + this->function);
}

Value Unary::exp(Value x) const {
  if (x.isExactly(0))
    return exact(1);
  return monotonic(x, [](double x) { return std::exp(x); }, 4 * unit, 0x1p-148);
}

Value Unary::expm1(Value x) const {
  if (x.isExactly(0))
    return exact(0);
  return monotonic(x, [](double x) { return std::expm1(x); }, 4 * unit, tiny);
}

Value Unary::log(Value x) const {
  const double result = std::log(x.value);
  if (!x.isDetermined())
    return undetermined(result);
  if (std::isnan(x.value) || x.isExactly(0) || x.value + x.error <= -least)
    return exact(result);
  if (x.isExactly(1))
    return exact(0);
  if (!(x.value - x.error > 0))
    return undetermined(result);
  return monotonic(x, [](double x) { return std::log(x); }, 4 * unit, 0);
}

Value Unary::log1p(Value x) const {
  const double result = std::log1p(x.value);
  if (!x.isDetermined())
    return undetermined(result);
  if (std::isnan(x.value) || x.isExactly(-1) || x.value + x.error < -1)
    return exact(result);
  if (x.isExactly(0))
    return exact(0);
  if (!(x.value - x.error > -1))
    return undetermined(result);
  return monotonic(x, [](double x) { return std::log1p(x); }, 4 * unit, tiny);
}

Value Unary::sqrt(Value x) const {
  const double result = std::sqrt(x.value);
  if (!x.isDetermined())
    return undetermined(result);
  if (std::isnan(x.value) || x.isExactly(0) || x.value + x.error <= -least)
    return exact(result);
  if (x.value - x.error < 0)
    return undetermined(result);
  return monotonic(x, [](double x) { return std::sqrt(x); }, 3 * unit, mayBeZero(x) ? std::sqrt(least) : 0);
}

/// The logarithm is at most ln 2, and has full relative accuracy.
Value Unary::softplus(Value x) const {
  if (!std::isfinite(x.value) && x.isDetermined())
    return exact(x.value < 0 ? 0 : x.value);
  return monotonic(
      x, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, 2 * function, tiny);
}

Value Unary::evaluate(Op op, Value x) const {
  switch (op) {
  case Op::exp:
    return exp(x);
  case Op::log:
    return log(x);
  case Op::expm1:
    return expm1(x);
  case Op::log1p:
    return log1p(x);
  case Op::sqrt:
    return sqrt(x);
  case Op::sin:
    return periodic(x, [](double x) { return std::sin(x); });
  case Op::cos:
    return periodic(x, [](double x) { return std::cos(x); });
  case Op::erf:
    return monotonic(x, [](double x) { return std::erf(x); }, 1.5 * function, tiny);
  case Op::tanh:
    return monotonic(x, [](double x) { return std::tanh(x); }, 1.5 * function, tiny);
  case Op::sigmoid:
    return monotonic(x, [](double x) { return 1 / (1 + std::exp(-x)); }, 1.5 * function, tiny);
  case Op::relu:
    return maximum(x, exact(0));
  case Op::gelu:
    return gated(x, [](double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); });
  case Op::gelu_tanh:
    return gated(x, [](double x) {
      const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return x / (1 + std::exp(-2 * inner)); // (1 + tanh(u)) / 2 without its cancellation
    });
  case Op::silu:
    return gated(x, [](double x) { return x / (1 + std::exp(-x)); });
  case Op::softplus:
    return softplus(x);
  case Op::abs:
    return {std::abs(x.value), x.error};
  // Undetermined where an integer, or for `round` a half-integer, is within the error.
  case Op::floor:
    return monotonic(x, [](double x) { return std::floor(x); }, 0, 0);
  case Op::round:
    return monotonic(x, [](double x) { return std::nearbyint(x); }, 0, 0);
  default:
    throw std::runtime_error(std::string(name_of(op)) + " is not known");
  }
}

} // namespace

Value evaluateUnary(Op op, Value x, const Arithmetic &arithmetic) { return Unary(arithmetic).evaluate(op, x); }

Tensor evaluateUnary(const OpCall &call) {
  call.requireOperands(1, 1);
  call.requireFloating();
  const Tensor &x = call[0];
  const Unary arithmetic{Arithmetic(x.element)};
  Tensor result = call.result(x.shape, x.element);
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.set(i, arithmetic.evaluate(call.node.op, x.at(i)));
  return result;
}

} // namespace kiln::interpreter
