// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Arithmetic.h"

#include <algorithm>
#include <cmath>

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
    const bool isOpen = (std::isfinite(a.value) && mayBeZero(a)) || (std::isfinite(b.value) && mayBeZero(b));
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
  if (!areDetermined(a, b) || (std::isfinite(b.value) && mayBeZero(b)))
    return undetermined(quotient);
  if (!areFinite(a, b)) {
    const bool isZero = std::isfinite(a.value) && mayBeZero(a); // a simplifier may fold 0 / NaN
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
