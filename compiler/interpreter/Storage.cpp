// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Storage.h"

#include <algorithm>
#include <cmath>

namespace kiln::interpreter {

static std::runtime_error refused(const std::string &rule) {
  return std::runtime_error("a stored weight requires " + rule);
}

/// A quotient or a product of two numbers of f32, rounded once more: f64 has so many digits that it is theirs in f32.
static double toF32(double value) { return roundTo(ElementType::f32, value); }

static void roundToShort(std::vector<double> &values, ElementType element) {
  for (double &value : values) {
    const double rounded = roundTo(element, value);
    if (!std::isfinite(rounded))
      throw refused(std::string("numbers within ") + name_of(element) + ": got " + std::to_string(value));
    value = rounded;
  }
}

static void roundToScaled(std::vector<double> &values, const TensorShape &shape, std::size_t dim) {
  std::size_t inner = 1; // elements from one index of the dimension to the next
  for (std::size_t i = dim + 1; i < shape.size(); ++i)
    inner *= static_cast<std::size_t>(shape[i]);
  const auto extent = static_cast<std::size_t>(shape[dim]);
  auto indexOf = [&](std::size_t flat) { return flat / inner % extent; };

  std::vector<double> scales(extent);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::abs(values[i]) <= 0x1p127))
      throw refused("numbers within 2^127: got " + std::to_string(values[i]));
    scales[indexOf(i)] = std::max(scales[indexOf(i)], std::abs(values[i]));
  }
  const double most = 127;
  for (double &scale : scales)
    scale = toF32(scale / most);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scale = scales[indexOf(i)];
    const double whole = scale == 0 ? 0 : std::clamp(std::nearbyint(toF32(values[i] / scale)), -most, most);
    values[i] = toF32(whole * scale);
  }
}

void roundToStored(std::vector<double> &values, const TensorShape &shape, ElementType element, std::int64_t dim) {
  if (static_cast<std::int64_t>(values.size()) != elementCount(shape))
    throw refused("as many numbers as elements");
  if (short_float(element))
    return roundToShort(values, element);
  if (element != ElementType::i8)
    throw refused(std::string("f16, bf16 or i8: got ") + name_of(element));
  if (dim < 0 || dim >= static_cast<std::int64_t>(shape.size()))
    throw refused("scales along one of its dimensions: got " + std::to_string(dim) + " of " + describe(shape));
  roundToScaled(values, shape, static_cast<std::size_t>(dim));
}

} // namespace kiln::interpreter
