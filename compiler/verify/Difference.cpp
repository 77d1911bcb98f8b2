// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/Difference.h"

#include <cmath>
#include <fmt/format.h>

namespace kiln::verify {

using interpreter::Tensor;

static bool isWithin(interpreter::Value expected, double actual) {
  if (std::isnan(expected.value))
    return std::isnan(actual);
  if (std::isinf(expected.value) || expected.error == 0)
    return actual == expected.value;
  return std::abs(actual - expected.value) <= expected.error;
}

std::optional<std::string> findDifference(const Tensor &expected, const Tensor &actual, std::size_t &undetermined) {
  if (actual.element != expected.element)
    return fmt::format("its elements were {}, are {}", name_of(expected.element), name_of(actual.element));
  if (actual.shape != expected.shape)
    return fmt::format("its extents were {}, are {}", interpreter::describe(expected.shape),
                       interpreter::describe(actual.shape));
  std::optional<std::string> difference;
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const interpreter::Value value = expected.at(i);
    if (!value.isDetermined())
      ++undetermined;
    else if (!difference && !isWithin(value, actual.values[i]))
      difference = fmt::format("element {} was {:.9g}, is {:.9g}", i, value.value, actual.values[i]);
  }
  return difference;
}

} // namespace kiln::verify
