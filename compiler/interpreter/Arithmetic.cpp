// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Arithmetic.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kiln::interpreter {

/// The largest exponent is 1 minus that of the smallest normal number.
double largestOf(ElementType element) {
  return std::ldexp(1 - std::ldexp(1.0, -info(element).digits), 2 - info(element).least_exponent());
}

Value rounded(ElementType element, Value x) {
  if (!x.isDetermined() || !std::isfinite(x.value) || (x.error == 0 && roundTo(element, x.value) == x.value))
    return x;
  const ElementInfo &type = info(element);
  const double size = std::abs(x.value) + x.error;
  if (!std::isfinite(roundTo(element, size)))
    return undetermined(x.value);
  return {x.value,
          x.error + std::max(std::ldexp(size, -type.digits), std::ldexp(1.0, type.least_exponent() - type.digits))};
}

Arithmetic::Arithmetic(ElementType element) {
  if (!floating(element) || half_float(element)) // integers do not use the bounds
    element = ElementType::f32;
  unit = std::ldexp(1.0, -info(element).digits);
  least = std::ldexp(1.0, info(element).least_exponent());
  largest = largestOf(element);
  tiny = 1e-37;
  function = std::max(4e-7, 2 * unit);
}

Value Arithmetic::settle(double value, double error) const {
  if (!std::isfinite(value) || !(std::abs(value) + error < largest))
    return undetermined(value);
  return {value, error};
}

static bool areDetermined(Value a, Value b) { return a.isDetermined() && b.isDetermined(); }
static bool areFinite(Value a, Value b) { return std::isfinite(a.value) && std::isfinite(b.value); }
/// Whether the number may be 0, or be flushed to it.
static bool mayBeZero(Value x, double least) { return !(std::abs(x.value) - x.error >= least); }

/// The bound depends on the magnitudes of the terms, not of the result, so it holds for any tree of additions.
Value Arithmetic::add(Value a, Value b) const {
  const double sum = a.value + b.value;
  if (!areDetermined(a, b))
    return undetermined(sum);
  if (!areFinite(a, b))
    return exact(sum);
  if (a.isExactly(0))
    return b;
  if (b.isExactly(0))
    return a;
  return settle(sum, a.error + b.error + unit * (std::abs(a.value) + a.error + std::abs(b.value) + b.error) + tiny);
}

Value Arithmetic::mul(Value a, Value b) const {
  const double product = a.value * b.value;
  if (!areDetermined(a, b))
    return undetermined(product);
  if (!areFinite(a, b)) { // 0 times infinity is NaN, but a simplifier may fold a 0
    const bool isOpen =
        (std::isfinite(a.value) && mayBeZero(a, least)) || (std::isfinite(b.value) && mayBeZero(b, least));
    return isOpen ? undetermined(product) : exact(product);
  }
  if (a.isExactly(0) || b.isExactly(0))
    return exact(0);
  const double most = (std::abs(a.value) + a.error) * (std::abs(b.value) + b.error);
  return settle(product, most - std::abs(product) + unit * most + tiny);
}

/// Allows for a reciprocal, whose rounding adds an error and which is flushed to zero for large divisors.
Value Arithmetic::div(Value a, Value b) const {
  const double quotient = a.value / b.value;
  if (!areDetermined(a, b) || (std::isfinite(b.value) && mayBeZero(b, least)))
    return undetermined(quotient);
  if (!areFinite(a, b)) {
    const bool isZero = std::isfinite(a.value) && mayBeZero(a, least); // a simplifier may fold 0 / NaN
    return isZero && std::isnan(quotient) ? undetermined(quotient) : exact(quotient);
  }
  if (a.isExactly(0))
    return exact(0);
  const double smallest = std::abs(b.value) - b.error, most = (std::abs(a.value) + a.error) / smallest;
  double error = (a.error + std::abs(quotient) * b.error) / smallest + 3 * unit * most + tiny;
  if ((std::abs(b.value) + b.error) * least * 4 > 1)
    error += most;
  return settle(quotient, error);
}

Value Arithmetic::maximum(Value a, Value b) const {
  const double largerOne = std::isnan(a.value) ? a.value : std::isnan(b.value) ? b.value : std::max(a.value, b.value);
  if (!areDetermined(a, b))
    return undetermined(largerOne);
  if (!std::isfinite(largerOne))
    return exact(largerOne);
  const double high = std::max(a.value + a.error, b.value + b.error),
               low = std::max(a.value - a.error, b.value - b.error);
  return {largerOne, std::max(high - largerOne, largerOne - low)};
}

/// Evaluates a non-decreasing function at the ends of the interval.
template <class Function>
Value Arithmetic::monotonic(Value x, Function function, double relative, double absolute) const {
  const double result = function(x.value);
  if (!x.isDetermined())
    return undetermined(result);
  if (!std::isfinite(x.value))
    return exact(result);
  const double low = function(x.value - x.error), high = function(x.value + x.error);
  return settle(result,
                std::max(high - result, result - low) + relative * std::max(std::abs(low), std::abs(high)) + absolute);
}

Value Arithmetic::exp(Value x) const {
  if (x.isExactly(0))
    return exact(1);
  return monotonic(x, [](double x) { return std::exp(x); }, 4 * unit, 0x1p-148);
}

Value Arithmetic::log(Value x) const {
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

Value Arithmetic::sqrt(Value x) const {
  const double result = std::sqrt(x.value);
  if (!x.isDetermined())
    return undetermined(result);
  if (std::isnan(x.value) || x.isExactly(0) || x.value + x.error <= -least)
    return exact(result);
  if (x.value - x.error < 0)
    return undetermined(result);
  return monotonic(x, [](double x) { return std::sqrt(x); }, 3 * unit, mayBeZero(x, least) ? std::sqrt(least) : 0);
}

Value Arithmetic::tanh(Value x) const {
  return monotonic(x, [](double x) { return std::tanh(x); }, 1.5 * function, tiny);
}

Value Arithmetic::sigmoid(Value x) const {
  return monotonic(x, [](double x) { return 1 / (1 + std::exp(-x)); }, 1.5 * function, tiny);
}

/// x times a gate that increases from 0 to 1: the slope is below 1.13 everywhere, and the error of an implementation is
/// proportional to x. x (1 + g) / 2 loses digits to cancellation below 0, so the error does not shrink with the result.
template <class Function> Value Arithmetic::gated(Value x, Function function) const {
  const double result = function(x.value);
  if (!x.isDetermined() || x.value == -std::numeric_limits<double>::infinity())
    return undetermined(result);
  if (!std::isfinite(x.value))
    return exact(x.value);
  return settle(result, 1.13 * x.error + 1.5 * this->function * (std::abs(x.value) + x.error) + tiny);
}

Value Arithmetic::gelu(Value x) const {
  return gated(x, [](double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); });
}

Value Arithmetic::geluTanh(Value x) const {
  return gated(x, [](double x) {
    const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return x / (1 + std::exp(-2 * inner)); // (1 + tanh(u)) / 2 without its cancellation
  });
}

Value Arithmetic::silu(Value x) const {
  return gated(x, [](double x) { return x / (1 + std::exp(-x)); });
}

/// The logarithm is at most ln 2, and has full relative accuracy.
Value Arithmetic::softplus(Value x) const {
  if (!std::isfinite(x.value) && x.isDetermined())
    return exact(x.value < 0 ? 0 : x.value);
  return monotonic(
      x, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, 2 * function, tiny);
}

Value Arithmetic::floor(Value x) const {
  return monotonic(x, [](double x) { return std::floor(x); }, 0, 0);
}

Value Arithmetic::round(Value x) const {
  return monotonic(x, [](double x) { return std::nearbyint(x); }, 0, 0);
}

void Sum::add(Value term) {
  isDetermined &= term.isDetermined();
  if (!std::isfinite(term.value)) {
    isSpecial = true;
    special += term.value;
  } else if (!term.isExactly(0)) {
    value += term.value;
    magnitude += std::abs(term.value);
    error += term.error;
    ++count;
  }
}

void Sum::addProduct(Value a, Value b) {
  if (!areDetermined(a, b) || !areFinite(a, b))
    return add(arithmetic.mul(a, b));
  if (a.isExactly(0) || b.isExactly(0))
    return;
  value += a.value * b.value;
  magnitude += std::abs(a.value * b.value);
  error += std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
  ++count;
  hasProduct = true;
}

Value Sum::result(int more) const {
  if (!isDetermined || !arithmetic.holds(size()))
    return undetermined(isSpecial ? special : value);
  if (isSpecial)
    return exact(special);
  if (count == 0)
    return exact(0);
  const double rounded = roundings(count - 1 + hasProduct + more);
  return arithmetic.settle(value, error + arithmetic.unit * rounded * size() +
                                      (rounded > 0 ? arithmetic.tiny * static_cast<double>(count) : 0));
}

double wrap(ElementType element, std::int64_t value) {
  const int above = 63 - info(element).digits; // bits of the sum that do not fit the element type
  return static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << above) >> above);
}

} // namespace kiln::interpreter
