// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Storage.h"

#include "kiln/storage.h"

#include <algorithm>
#include <cmath>

namespace kiln::interpreter {

static std::runtime_error refused(const std::string &problem) {
  return std::runtime_error("stored weight: " + problem);
}

/// Rounds a quotient or product of two f32 numbers again: f64 has enough digits that the result is that of f32
/// arithmetic.
static double toF32(double value) { return roundTo(ElementType::f32, value); }

/// Throws if the format cannot store the number.
static void check(double value, const Format &format) {
  if (!(std::abs(value) <= double{format.limit}))
    throw refused("number out of range; expected one within 2^" + std::to_string(std::ilogb(format.limit)) + ", got " +
                  std::to_string(value));
}

/// Returns the largest number of a format with scales: by what the largest magnitude is divided, or, if scales are
/// powers of two, the largest number of its type.
static double largestOf(const Format &format) {
  return static_cast<ElementType>(format.element) == ElementType::f4e2m1 ? 6 : double{format.divisor};
}

/// Rounds a quotient of a number and its scale to a number of the format.
static double nearest(double quotient, const Format &format) {
  const ElementInfo &type = info(static_cast<ElementType>(format.element));
  const double most = largestOf(format);
  const double unit = type.kind == ElementKind::integer || quotient == 0
                          ? 1
                          : std::ldexp(1.0, std::max(std::ilogb(quotient), type.least_exponent()) - (type.digits - 1));
  return std::clamp(std::nearbyint(quotient / unit) * unit, -most, most);
}

static void roundToHalf(std::vector<double> &values, ElementType element) {
  for (double &value : values) {
    const double rounded = roundTo(element, value);
    if (!std::isfinite(rounded))
      throw refused(std::string("number out of range; expected one within ") + name_of(element) + ", got " +
                    std::to_string(value));
    value = rounded;
  }
}

static void roundToScaled(std::vector<double> &values, const TensorShape &shape, std::size_t dim,
                          const Format &format) {
  std::size_t inner = 1; // distance of elements with adjacent indices of the dimension
  for (std::size_t i = dim + 1; i < shape.size(); ++i)
    inner *= static_cast<std::size_t>(shape[i]);
  const auto extent = static_cast<std::size_t>(shape[dim]);
  auto indexOf = [&](std::size_t flat) { return flat / inner % extent; };

  std::vector<double> scales(extent);
  for (std::size_t i = 0; i < values.size(); ++i) {
    check(values[i], format);
    scales[indexOf(i)] = std::max(scales[indexOf(i)], std::abs(values[i]));
  }
  for (double &scale : scales)
    scale = toF32(scale / double{format.divisor});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scale = scales[indexOf(i)];
    values[i] = scale == 0 ? 0 : toF32(nearest(toF32(values[i] / scale), format) * scale);
  }
}

/// Rounds one group, whose scale is a power of two: that of the largest number over that of the largest of the format.
static void roundGroupOfFloats(std::vector<double> &values, const std::vector<std::size_t> &places,
                               const Format &format) {
  double largest = 0;
  for (std::size_t place : places) {
    check(values[place], format);
    largest = std::max(largest, std::abs(values[place]));
  }
  const int least = -127;
  const int exponent = largest == 0 ? least : std::max(std::ilogb(largest) - std::ilogb(format.divisor), least);
  for (std::size_t place : places)
    values[place] = std::ldexp(nearest(std::ldexp(values[place], -exponent), format), exponent);
}

/// Rounds one group, whose numbers are at `places`.
static void roundGroup(std::vector<double> &values, const std::vector<std::size_t> &places, const Format &format) {
  const bool zero = format.has_zeros;
  double least = 0, most = 0, largest = 0;
  for (std::size_t place : places) {
    const double value = values[place];
    check(value, format);
    least = std::min(least, value);
    most = std::max(most, value);
    if (std::abs(value) > std::abs(largest))
      largest = value;
  }
  const double exact = zero ? toF32(toF32(most - least) / 15) : toF32(largest / -8);
  const double scale = roundTo(static_cast<ElementType>(format.scale), exact);
  const double none = !zero ? 8 : scale == 0 ? 0 : std::clamp(std::nearbyint(toF32(-least / scale)), 0.0, 15.0);
  for (std::size_t place : places) {
    const double whole = scale == 0 ? none : std::nearbyint(toF32(values[place] / scale)) + none;
    values[place] = (std::clamp(whole, 0.0, 15.0) - none) * scale;
  }
}

static void roundToGrouped(std::vector<double> &values, const TensorShape &shape, const Storage &storage,
                           const Format &format) {
  const auto dim = static_cast<std::size_t>(storage.dim), group = static_cast<std::size_t>(storage.group);
  std::size_t inner = 1;
  for (std::size_t i = dim + 1; i < shape.size(); ++i)
    inner *= static_cast<std::size_t>(shape[i]);
  const auto extent = static_cast<std::size_t>(shape[dim]);
  const std::size_t kExtent = extent ? values.size() / extent : 0;
  if (kExtent % group)
    throw refused("K is not divisible by the group; expected a multiple of " + std::to_string(group) + ", got " +
                  std::to_string(kExtent));
  for (std::size_t n = 0; n < extent; ++n)
    for (std::size_t first = 0; first < kExtent; first += group) {
      std::vector<std::size_t> places;
      for (std::size_t k = first; k < first + group; ++k)
        places.push_back((k / inner * extent + n) * inner + k % inner);
      if (info(storage.element).kind == ElementKind::small_float)
        roundGroupOfFloats(values, places, format);
      else
        roundGroup(values, places, format);
    }
}

void roundToStored(std::vector<double> &values, const TensorShape &shape, const Storage &storage) {
  const ElementType element = storage.element;
  if (static_cast<std::int64_t>(values.size()) != elementCount(shape))
    throw refused("wrong number of values; expected one for each element");
  if (half_float(element))
    return roundToHalf(values, element);
  if (!is_format_element(element) || element == ElementType::f32)
    throw refused(std::string("unsupported element type; expected ") + format_elements.data() + ", got " +
                  name_of(element));
  const Format *format = find_format(element, static_cast<int>(storage.group), storage.zero);
  if (!format)
    throw refused("unsupported groups; expected those of a storage format, got " + std::to_string(storage.group));
  if (storage.dim < 0 || storage.dim >= static_cast<std::int64_t>(shape.size()))
    throw refused("dimension of the scales out of range; expected one of the weight, got " +
                  std::to_string(storage.dim) + " of " + describe(shape));
  if (format->group == 0)
    roundToScaled(values, shape, static_cast<std::size_t>(storage.dim), *format);
  else
    roundToGrouped(values, shape, storage, *format);
}

} // namespace kiln::interpreter
