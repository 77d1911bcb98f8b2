// SPDX-License-Identifier: Apache-2.0
//
// The weights of one row: p_i = exp(x_i - m) / sum_j exp(x_j - m) with m the largest x. Their bounds follow from
// intervals [low, high] of each exponential: p_i is largest where its own exponential is high and all others are low,
// and smallest in the opposite case. Rows may be processed in blocks with a running maximum: earlier terms are then
// rescaled once per block.
#pragma once

#include "compiler/interpreter/Arithmetic.h"

namespace kiln::interpreter {

class SoftmaxRow {
public:
  /// The row has numbers and -infinity, a term of weight 0. Any NaN makes all weights NaN. A row is undetermined if it
  /// has an undetermined element or +infinity, nothing above `lowest`, or just one NaN element, whose difference from
  /// itself may be 0.
  SoftmaxRow(const Arithmetic &arithmetic, std::vector<Value> row);

  /// exp(x_i - m) / sum
  Value weight(std::size_t i) const;
  /// x_i - m - log(sum)
  Value logarithm(std::size_t i) const;
  bool isDetermined() const { return state == State::numbers; }
  bool isNan() const { return state == State::nan; }

  /// Scores of at most this value are masked out. No sum of products comes near it.
  static constexpr double lowest = -1e37;

private:
  enum class State { numbers, nan, undetermined };
  struct Term {
    double value, low, high; // the exponential, and its interval
    double slack;            // the error of its logarithm
  };

  const Arithmetic &arithmetic;
  std::vector<Value> row;
  std::vector<Term> terms;
  State state = State::numbers;
  double most = 0;
  double sum = 0, sumOfLows = 0, sumOfHighs = 0;
};

} // namespace kiln::interpreter
