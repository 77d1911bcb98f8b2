// SPDX-License-Identifier: Apache-2.0
//
// Compares the results of a compiled library with those of the interpreter.
#pragma once

#include <span>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

struct Comparison {
  bool isRight = false;
  std::size_t count = 0;                      // elements
  std::size_t wrong = 0;                      // elements outside of their bound
  std::size_t undetermined = 0;               // elements without a bound, for which anything is correct
  std::size_t first = 0;                      // the first wrong element, as a linear index
  double expected = 0, error = 0, actual = 0; // of the first wrong element
  double worst = 0;    // the largest |actual - expected| / error of determined elements; infinity where error is 0
  double tight = 0;    // see tightShare()
  TensorShape index;   // of the first wrong element
  bool hasSize = true; // whether the number of elements is correct
};

/// "2 of 15 elements are wrong, first [1, 3]: got 0.25, expected 0.5 +- 1e-7; ..."
std::string describe(const Comparison &comparison);

/// An element is correct if |actual - value| <= factor * error; an infinity must be equal, and a NaN may be any NaN.
Comparison compare(const Tensor &expected, std::span<const float> actual, double factor = 1);
Comparison compare(const Tensor &expected, std::span<const std::int32_t> actual, double factor = 1);
Comparison compare(const Tensor &expected, std::span<const std::int8_t> actual, double factor = 1);
/// Booleans.
Comparison compare(const Tensor &expected, std::span<const std::uint8_t> actual, double factor = 1);

/// Returns the share of elements with a tight bound: error <= 1e-3 (|value| + the mean |value| of the tensor), for f16
/// and bf16 four roundings of that instead, or a determined integer, infinity or NaN. 1 is best; at 0 a comparison
/// cannot fail.
double tightShare(const Tensor &tensor);

} // namespace kiln::interpreter
