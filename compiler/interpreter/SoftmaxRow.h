// SPDX-License-Identifier: Apache-2.0
//
// The weights of one row: p_i = exp(x_i - m) / sum_j exp(x_j - m) with m the largest x. Their bounds come from
// intervals of each exponential, [low, high]: p_i is largest where its own is at its high end and all others are at
// their low ones, and smallest the other way round. Rows may be walked in blocks with a running maximum: then earlier
// terms are rescaled once a block.
#pragma once

#include "compiler/interpreter/Arithmetic.h"

namespace kiln::interpreter {

class SoftmaxRow {
public:
  /// Numbers and -infinity: a term of no weight. Any NaN makes all weights NaN. A row that is not determined: with such
  /// an element, with +infinity, with nothing above `lowest`, or of NaN alone, whose difference from itself may be 0.
  SoftmaxRow(const Arithmetic &arithmetic, std::vector<Value> row);

  /// exp(x_i - m) / sum
  Value weight(std::size_t i) const;
  /// x_i - m - log(sum)
  Value logarithm(std::size_t i) const;
  bool isDetermined() const { return state == State::numbers; }
  bool isNan() const { return state == State::nan; }

  /// Scores at or below it stand for what is masked out. No sum of products comes near.
  static constexpr double lowest = -1e37;

private:
  enum class State { numbers, nan, undetermined };
  struct Term {
    double value, low, high; // the exponential, and where it may lie
    double slack;            // what its logarithm may be off
  };

  const Arithmetic &arithmetic;
  std::vector<Value> row;
  std::vector<Term> terms;
  State state = State::numbers;
  double most = 0;
  double sum = 0, sumOfLows = 0, sumOfHighs = 0;
};

} // namespace kiln::interpreter
