// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/QuantizeRows.h"

#include <algorithm>
#include <cmath>

#include "compiler/interpreter/Arithmetic.h"

namespace kiln::interpreter {

constexpr double most = 127;

/// Rounds a quotient of two f32 numbers again: f64 has enough digits that the result is that of f32 arithmetic.
static double inF32(double value) { return roundTo(ElementType::f32, value); }

/// Returns the quantised integer of x.
static double whole(double x, double scale) {
  return scale == 0 ? 0 : std::clamp(std::nearbyint(inF32(x / scale)), -most, most);
}

static std::int64_t widthOf(const Tensor &x) {
  if (x.rank() < 1 || x.element != ElementType::f32)
    throw std::runtime_error("rows of int8: wrong operand; expected rows of f32, got " + describe(x));
  return x.shape.back();
}

Tensor rowScales(const Tensor &x) {
  const std::int64_t width = widthOf(x);
  Tensor scales = Tensor::zeros(x.element, {x.shape.begin(), x.shape.end() - 1});
  for (std::int64_t row = 0; row < scales.size(); ++row) {
    double largest = 0, error = 0;
    bool isFinite = true;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
      isFinite &= std::isfinite(x.values[i]);
      largest = std::max(largest, std::abs(x.values[i]));
      error = std::max(error, x.errors[i]);
    }
    const double scale = inF32(largest / most), above = inF32((largest + error) / most);
    const double below = inF32(std::max(0.0, largest - error) / most);
    if (!std::isfinite(error))
      scales.set(row, undetermined(scale));
    else if (!isFinite)
      scales.set(row, exact(std::numeric_limits<double>::quiet_NaN()));
    else if (!std::isfinite(above) || largest + error > largestOf(ElementType::f32))
      scales.set(row, undetermined(scale));
    else
      scales.set(row, {scale, std::max(above - scale, scale - below)});
  }
  return scales;
}

Tensor quantizeRows(const Tensor &x, const Tensor &scales) {
  const std::int64_t width = widthOf(x);
  if (scales.shape != TensorShape(x.shape.begin(), x.shape.end() - 1))
    throw std::runtime_error("rows of int8: wrong number of scales; expected one for each, got " + describe(x) +
                             " and " + describe(scales));
  Tensor result = Tensor::zeros(ElementType::i8, x.shape);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const Value from = x.at(i), scale = scales.at(i / width);
    if (!from.isDetermined() || !scale.isDetermined() || !std::isfinite(scale.value) || !std::isfinite(from.value)) {
      result.set(i, undetermined());
      continue;
    }
    const double value = whole(from.value, scale.value);
    double error = 0;
    for (const double x : {from.value - from.error, from.value + from.error})
      for (const double s : {scale.value - scale.error, scale.value + scale.error})
        error = std::max(error, std::abs(whole(x, std::max(s, 0.0)) - value));
    result.set(i, {value, error});
  }
  return result;
}

Tensor throughInt8(const Tensor &x) {
  const std::int64_t width = widthOf(x);
  const Tensor scales = rowScales(x), numbers = quantizeRows(x, scales);
  Tensor result = Tensor::zeros(x.element, x.shape);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const Value scale = scales.at(i / width), number = numbers.at(i);
    if (std::isnan(scale.value))
      result.set(i, exact(scale.value));
    else if (!scale.isDetermined() || !number.isDetermined())
      result.set(i, undetermined(number.value * scale.value));
    else
      result.set(i, {number.value * scale.value,
                     std::abs(number.value) * scale.error + number.error * (scale.value + scale.error)});
  }
  return result;
}

} // namespace kiln::interpreter
