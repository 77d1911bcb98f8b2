// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/SoftmaxRow.h"

#include <algorithm>
#include <cmath>

namespace kiln::interpreter {

/// The smallest number of keys in a block of an implementation with a running maximum.
static constexpr std::size_t block = 64;

SoftmaxRow::SoftmaxRow(const Arithmetic &arithmetic, std::vector<Value> given)
    : arithmetic(arithmetic), row(std::move(given)) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  bool hasNan = false, isKnown = true;
  double highest = -infinity;
  most = -infinity;
  for (Value x : row) {
    isKnown &= x.isDetermined();
    hasNan |= std::isnan(x.value);
    most = std::max(most, x.value); // NaN never compares larger
    highest = std::max(highest, x.value - x.error);
  }
  const bool hasScale = most < infinity && highest > lowest;
  // A simplifier may fold a row of one element to 1, for any element.
  const bool isNan = hasNan && row.size() > 1;
  state = isKnown && isNan ? State::nan : isKnown && hasScale && !hasNan ? State::numbers : State::undetermined;
  const double rescaling = arithmetic.function * (2 + static_cast<double>(row.size()) / block);
  for (Value x : row) {
    // The difference is rounded; a shorter exponential for arguments below 0 has an error in proportion to them.
    const double distance = most - x.value;
    const double slack = x.value == -infinity ? 0
                                              : x.error + arithmetic.unit * (std::abs(x.value) + std::abs(most)) +
                                                    4 * arithmetic.unit * distance + rescaling;
    const Term term{std::exp(-distance), std::exp(-distance - slack), std::exp(-distance + slack), slack};
    terms.push_back(term);
    sum += term.value;
    sumOfLows += term.low;
    sumOfHighs += term.high;
  }
}

Value SoftmaxRow::weight(std::size_t i) const {
  if (isNan())
    return exact(std::numeric_limits<double>::quiet_NaN());
  const Term &term = terms[i];
  const double weight = term.value / sum;
  if (!isDetermined())
    return undetermined(weight);
  if (row[i].value == -std::numeric_limits<double>::infinity())
    return exact(0);
  const double otherLows = std::max(sumOfLows - term.low, 0.0), otherHighs = std::max(sumOfHighs - term.high, 0.0);
  // Beyond the range of double it is only known that a weight is between 0 and 1.
  const double high = std::isfinite(term.high) ? term.high / (term.high + otherLows) : 1;
  const double low = std::isfinite(otherHighs) && term.low > 0 ? term.low / (term.low + otherHighs) : 0;
  const double rounded = roundings(static_cast<std::int64_t>(row.size())) + 4;
  return arithmetic.settle(weight,
                           std::max(high - weight, weight - low) + arithmetic.unit * rounded * high + arithmetic.tiny);
}

Value SoftmaxRow::logarithm(std::size_t i) const {
  if (isNan())
    return exact(std::numeric_limits<double>::quiet_NaN());
  const Term &term = terms[i];
  const double distance = row[i].value - most, result = distance - std::log(sum);
  if (!isDetermined())
    return undetermined(result);
  if (row[i].value == -std::numeric_limits<double>::infinity())
    return exact(row[i].value);
  const double otherLows = std::max(sumOfLows - term.low, 0.0), otherHighs = std::max(sumOfHighs - term.high, 0.0);
  const double high = distance + term.slack - std::log(term.high + otherLows);
  const double low = distance - term.slack - std::log(term.low + otherHighs);
  const double rounded = roundings(static_cast<std::int64_t>(row.size())) + 4;
  const double local = arithmetic.unit * (rounded + std::abs(row[i].value) + std::abs(most) + 2 * std::abs(result)) +
                       arithmetic.function * std::max(1.0, std::log(sum));
  return arithmetic.settle(result, std::max(high - result, result - low) + local);
}

} // namespace kiln::interpreter
