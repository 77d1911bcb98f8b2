// SPDX-License-Identifier: Apache-2.0
// Shared helpers of the model tests: inputs from the counter, and distances between outputs.
#pragma once

#include "counter.h"

#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace kiln::testing {

/// Returns the golden inputs: the values of `name` mod `vocabulary`.
inline std::vector<std::int32_t> counterTokens(const char *name, std::int64_t count, std::int32_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(counter_token(name, i, vocabulary));
  return tokens;
}

/// Returns the golden inputs: the values of `name` in [-factor, factor).
inline std::vector<float> counterValues(const char *name, std::size_t count, float factor = 1) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(factor * counter_uniform(name, i));
  return values;
}

/// Returns max |a - b| / max |b|; infinite if anything is NaN.
template <class A, class B> double relativeError(const A &a, const B &b) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < std::size(b); ++i) {
    double difference = std::fabs(double{a[i]} - double{b[i]});
    if (std::isnan(difference))
      return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference);
    largest = std::max(largest, std::fabs(double{b[i]}));
  }
  return largest == 0 ? worst : worst / largest;
}

} // namespace kiln::testing
