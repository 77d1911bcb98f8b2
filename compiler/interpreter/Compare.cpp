// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Compare.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace kiln::interpreter {

static TensorShape indexOf(std::size_t flat, const TensorShape &shape) {
  TensorShape index(shape.size());
  auto rest = static_cast<std::int64_t>(flat);
  for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d])
    index[d] = rest % shape[d];
  return index;
}

/// Returns |actual - expected| / error: 0 if they are equal; infinity if an exact value differs.
static double distance(Value expected, double actual) {
  if (std::isnan(expected.value) || std::isnan(actual))
    return std::isnan(expected.value) && std::isnan(actual) ? 0 : std::numeric_limits<double>::infinity();
  if (actual == expected.value)
    return 0;
  const double difference = std::abs(actual - expected.value);
  return expected.error > 0 && std::isfinite(difference) ? difference / expected.error
                                                         : std::numeric_limits<double>::infinity();
}

template <class T> static Comparison compareAll(const Tensor &expected, std::span<const T> actual, double factor) {
  Comparison comparison;
  comparison.count = expected.values.size();
  comparison.tight = tightShare(expected);
  comparison.hasSize = actual.size() == expected.values.size();
  if (!comparison.hasSize)
    return comparison;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const Value value = expected.at(static_cast<std::int64_t>(i));
    if (!value.isDetermined()) {
      ++comparison.undetermined;
      continue;
    }
    const double off = distance(value, static_cast<double>(actual[i]));
    comparison.worst = std::max(comparison.worst, off);
    if (off <= factor)
      continue;
    if (comparison.wrong++ == 0) {
      comparison.first = i;
      comparison.index = indexOf(i, expected.shape);
      comparison.expected = value.value;
      comparison.error = value.error;
      comparison.actual = static_cast<double>(actual[i]);
    }
  }
  comparison.isRight = comparison.wrong == 0;
  return comparison;
}

Comparison compare(const Tensor &expected, std::span<const float> actual, double factor) {
  return compareAll(expected, actual, factor);
}
Comparison compare(const Tensor &expected, std::span<const std::int32_t> actual, double factor) {
  return compareAll(expected, actual, factor);
}
Comparison compare(const Tensor &expected, std::span<const std::int8_t> actual, double factor) {
  return compareAll(expected, actual, factor);
}
Comparison compare(const Tensor &expected, std::span<const std::uint8_t> actual, double factor) {
  return compareAll(expected, actual, factor);
}

std::string describe(const Comparison &found) {
  std::ostringstream text;
  text.precision(9);
  if (!found.hasSize) {
    text << "another number of elements than " << found.count;
    return text.str();
  }
  if (found.isRight)
    text << "all of " << found.count << " elements are right";
  else
    text << found.wrong << " of " << found.count << " elements are wrong, first " << describe(found.index) << ": got "
         << found.actual << ", expected " << found.expected << " +- " << found.error;
  text << "; at worst " << found.worst << " of the bound, " << found.undetermined << " not determined, "
       << 100 * found.tight << " % tightly bounded";
  return text.str();
}

double tightShare(const Tensor &tensor) {
  double total = 0, count = 0, tight = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.at(i).isDetermined() && std::isfinite(tensor.values[i])) {
      total += std::abs(tensor.values[i]);
      ++count;
    }
  const double typical = count > 0 ? total / count : 0;
  const bool isHalf = half_float(tensor.element);
  const double share = isHalf ? std::ldexp(4.0, -info(tensor.element).digits) : 1e-3;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const Value x = tensor.at(i);
    tight += x.isDetermined() && (x.error == 0 || x.error <= share * (std::abs(x.value) + typical));
  }
  return tensor.size() > 0 ? tight / static_cast<double>(tensor.size()) : 1;
}

} // namespace kiln::interpreter
