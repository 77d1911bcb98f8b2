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

/// Rounds a number to the nearest of a type, of which the largest is `most`.
static double nearest(double quotient, ElementType element, double most) {
  const ElementInfo &type = info(element);
  const double unit = type.kind == ElementKind::integer || quotient == 0
                          ? 1
                          : std::ldexp(1.0, std::max(std::ilogb(quotient), type.least_exponent()) - (type.digits - 1));
  return std::clamp(std::nearbyint(quotient / unit) * unit, -most, most);
}

/// Rounds a quotient of a number and its scale to a number of the format. The largest is by what the largest magnitude
/// is divided, or, if scales are powers of two, the largest number of its type.
static double nearest(double quotient, const Format &format) {
  const auto element = static_cast<ElementType>(format.element);
  return nearest(quotient, element, element == ElementType::f4e2m1 ? 6 : double{format.divisor});
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
  for (std::size_t place : places)
    largest = std::max(largest, std::abs(values[place]));
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

/// Rounds one group of bytes, integers or floats, whose scale is that of the largest magnitude.
static void roundGroupOfBytes(std::vector<double> &values, const std::vector<std::size_t> &places,
                              const Format &format) {
  double largest = 0;
  for (std::size_t place : places)
    largest = std::max(largest, std::abs(values[place]));
  const double scale = roundTo(static_cast<ElementType>(format.scale), toF32(largest / double{format.divisor}));
  for (std::size_t place : places)
    values[place] = scale == 0 ? 0 : toF32(nearest(toF32(values[place] / scale), format) * scale);
}

/// Rounds one group of nvfp4, given the outer scale of its output. The largest e4m3, a scale, is 448.
static void roundGroupOfNvfp4(std::vector<double> &values, const std::vector<std::size_t> &places, const Format &format,
                              double outer) {
  double largest = 0;
  for (std::size_t place : places)
    largest = std::max(largest, std::abs(values[place]));
  const double units = outer == 0 ? 0 : toF32(toF32(largest / double{format.divisor}) / outer);
  const double scale = toF32(nearest(units, ElementType::f8e4m3, 448) * outer);
  for (std::size_t place : places)
    values[place] = scale == 0 ? 0 : toF32(nearest(toF32(values[place] / scale), format) * scale);
}

/// Returns value / divisor, rounded to an integer within these bounds; 0 if the divisor is 0.
static double integerOf(double value, double divisor, double least, double most) {
  return divisor == 0 ? 0 : std::clamp(std::nearbyint(toF32(value / divisor)), least, most);
}

/// Rounds one block of q4_k.
static void roundBlockOfQ4K(std::vector<double> &values, const std::vector<std::size_t> &places, std::size_t group) {
  std::vector<double> steps, offsets;
  for (std::size_t first = 0; first < places.size(); first += group) {
    double least = 0, most = 0;
    for (std::size_t i = first; i < first + group; ++i) {
      least = std::min(least, values[places[i]]);
      most = std::max(most, values[places[i]]);
    }
    steps.push_back(toF32(toF32(most - least) / 15));
    offsets.push_back(-least);
  }
  const double scale = roundTo(ElementType::f16, toF32(*std::max_element(steps.begin(), steps.end()) / 63));
  const double minimum = roundTo(ElementType::f16, toF32(*std::max_element(offsets.begin(), offsets.end()) / 63));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double step = scale * integerOf(steps[i / group], scale, 0, 63);
    const double offset = minimum * integerOf(offsets[i / group], minimum, 0, 63);
    double &value = values[places[i]];
    value = toF32(step * integerOf(toF32(value + offset), step, 0, 15) - offset);
  }
}

/// Rounds one block of q6_k.
static void roundBlockOfQ6K(std::vector<double> &values, const std::vector<std::size_t> &places, std::size_t group) {
  auto isSmaller = [](double a, double b) { return std::abs(a) < std::abs(b); };
  std::vector<double> steps;
  for (std::size_t first = 0; first < places.size(); first += group) {
    double largest = 0;
    for (std::size_t i = first; i < first + group; ++i)
      if (isSmaller(largest, values[places[i]]))
        largest = values[places[i]];
    steps.push_back(toF32(largest / -32));
  }
  const double largest = *std::max_element(steps.begin(), steps.end(), isSmaller); // the first of equal magnitudes
  const double outer = roundTo(ElementType::f16, toF32(largest / -128));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double step = outer * integerOf(steps[i / group], outer, -128, 127);
    double &value = values[places[i]];
    value = step * integerOf(value, step, -32, 31);
  }
}

/// Rounds the numbers of one output, in the order of K.
static void roundOutput(std::vector<double> &values, const std::vector<std::size_t> &places, std::size_t group,
                        const Format &format) {
  const auto element = static_cast<ElementType>(format.element);
  double largest = 0;
  for (std::size_t place : places) {
    check(values[place], format);
    largest = std::max(largest, std::abs(values[place]));
  }
  const double outer = toF32(largest / (double{format.divisor} * 448)); // of nvfp4
  const std::size_t whole = kiln_format_whole(&format, static_cast<std::uint32_t>(group));
  for (auto first = places.begin(); first != places.end(); first += static_cast<std::ptrdiff_t>(whole)) {
    const std::vector<std::size_t> part(first, first + static_cast<std::ptrdiff_t>(whole));
    if (element == ElementType::u4)
      roundBlockOfQ4K(values, part, group);
    else if (element == ElementType::i6)
      roundBlockOfQ6K(values, part, group);
    else if (element == ElementType::i4)
      roundGroup(values, part, format);
    else if (format.outer_bits)
      roundGroupOfNvfp4(values, part, format, outer);
    else if (element == ElementType::f4e2m1)
      roundGroupOfFloats(values, part, format);
    else
      roundGroupOfBytes(values, part, format);
  }
}

static void roundToGrouped(std::vector<double> &values, const TensorShape &shape, const Storage &storage,
                           const Format &format) {
  const auto dim = static_cast<std::size_t>(storage.dim), group = static_cast<std::size_t>(storage.group);
  const std::size_t whole = kiln_format_whole(&format, static_cast<std::uint32_t>(group));
  std::size_t inner = 1;
  for (std::size_t i = dim + 1; i < shape.size(); ++i)
    inner *= static_cast<std::size_t>(shape[i]);
  const auto extent = static_cast<std::size_t>(shape[dim]);
  const std::size_t kExtent = extent ? values.size() / extent : 0;
  if (kExtent % whole)
    throw refused("K is not divisible by the group; expected a multiple of " + std::to_string(whole) + ", got " +
                  std::to_string(kExtent));
  for (std::size_t n = 0; n < extent; ++n) {
    std::vector<std::size_t> places;
    for (std::size_t k = 0; k < kExtent; ++k)
      places.push_back((k / inner * extent + n) * inner + k % inner);
    roundOutput(values, places, group, format);
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
