// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Storage.h"

#include <algorithm>
#include <cmath>

namespace kiln::interpreter {

static std::runtime_error refused(const std::string &problem) {
  return std::runtime_error("stored weight: " + problem);
}

/// Rounds a quotient or product of two f32 numbers again: f64 has enough digits that the result is that of f32
/// arithmetic.
static double toF32(double value) { return roundTo(ElementType::f32, value); }

static void roundToHalf(std::vector<double> &values, ElementType element) {
  for (double &value : values) {
    const double rounded = roundTo(element, value);
    if (!std::isfinite(rounded))
      throw refused(std::string("number out of range; expected one within ") + name_of(element) + ", got " +
                    std::to_string(value));
    value = rounded;
  }
}

static void roundToScaled(std::vector<double> &values, const TensorShape &shape, std::size_t dim) {
  std::size_t inner = 1; // distance of elements with adjacent indices of the dimension
  for (std::size_t i = dim + 1; i < shape.size(); ++i)
    inner *= static_cast<std::size_t>(shape[i]);
  const auto extent = static_cast<std::size_t>(shape[dim]);
  auto indexOf = [&](std::size_t flat) { return flat / inner % extent; };

  std::vector<double> scales(extent);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::abs(values[i]) <= 0x1p127))
      throw refused("number out of range; expected one within 2^127, got " + std::to_string(values[i]));
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

/// Rounds one group, whose numbers are at `places`.
static void roundGroup(std::vector<double> &values, const std::vector<std::size_t> &places, bool zero) {
  double least = 0, most = 0, largest = 0;
  for (std::size_t place : places) {
    const double value = values[place];
    if (!(std::abs(value) <= 0x1p18))
      throw refused("number out of range; expected one within 2^18, got " + std::to_string(value));
    least = std::min(least, value);
    most = std::max(most, value);
    if (std::abs(value) > std::abs(largest))
      largest = value;
  }
  const double exact = zero ? toF32(toF32(most - least) / 15) : toF32(largest / -8);
  const double scale = roundTo(ElementType::f16, exact);
  const double none = !zero ? 8 : scale == 0 ? 0 : std::clamp(std::nearbyint(toF32(-least / scale)), 0.0, 15.0);
  for (std::size_t place : places) {
    const double whole = scale == 0 ? none : std::nearbyint(toF32(values[place] / scale)) + none;
    values[place] = (std::clamp(whole, 0.0, 15.0) - none) * scale;
  }
}

static void roundToGrouped(std::vector<double> &values, const TensorShape &shape, const Storage &storage) {
  const auto dim = static_cast<std::size_t>(storage.dim), group = static_cast<std::size_t>(storage.group);
  std::size_t inner = 1;
  for (std::size_t i = dim + 1; i < shape.size(); ++i)
    inner *= static_cast<std::size_t>(shape[i]);
  const auto extent = static_cast<std::size_t>(shape[dim]);
  const std::size_t kExtent = extent ? values.size() / extent : 0;
  if (group == 0 || kExtent % group)
    throw refused("K is not divisible by the group; expected a multiple of " + std::to_string(group) + ", got " +
                  std::to_string(kExtent));
  for (std::size_t n = 0; n < extent; ++n)
    for (std::size_t first = 0; first < kExtent; first += group) {
      std::vector<std::size_t> places;
      for (std::size_t k = first; k < first + group; ++k)
        places.push_back((k / inner * extent + n) * inner + k % inner);
      roundGroup(values, places, storage.zero);
    }
}

void roundToStored(std::vector<double> &values, const TensorShape &shape, const Storage &storage) {
  const ElementType element = storage.element;
  if (static_cast<std::int64_t>(values.size()) != elementCount(shape))
    throw refused("wrong number of values; expected one for each element");
  if (half_float(element))
    return roundToHalf(values, element);
  if (element != ElementType::i8 && element != ElementType::i4)
    throw refused(std::string("unsupported element type; expected f16, bf16, i8 or i4, got ") + name_of(element));
  if (storage.dim < 0 || storage.dim >= static_cast<std::int64_t>(shape.size()))
    throw refused("dimension of the scales out of range; expected one of the weight, got " +
                  std::to_string(storage.dim) + " of " + describe(shape));
  if (element == ElementType::i8)
    roundToScaled(values, shape, static_cast<std::size_t>(storage.dim));
  else
    roundToGrouped(values, shape, storage);
}

} // namespace kiln::interpreter
