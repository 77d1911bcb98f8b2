// SPDX-License-Identifier: Apache-2.0
//
// What a compiled library gave beside what the interpreter says.
#pragma once

#include <span>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

struct Comparison {
  bool isRight = false;
  std::size_t count = 0;                      // elements
  std::size_t wrong = 0;                      // elements outside of their bound
  std::size_t undetermined = 0;               // elements of which anything is right
  std::size_t first = 0;                      // the first wrong element, flat
  double expected = 0, error = 0, actual = 0; // of the first wrong element
  double worst = 0;    // the largest |actual - expected| / error of what is determined; infinity where error is 0
  double tight = 0;    // see tightShare()
  TensorShape index;   // of the first wrong element
  bool hasSize = true; // whether there are as many elements
};

/// "2 of 15 elements are wrong, first [1, 3]: got 0.25, expected 0.5 +- 1e-7; ..."
std::string describe(const Comparison &comparison);

/// Right is |actual - value| <= factor * error; of an infinity the same one, of a NaN any NaN.
Comparison compare(const Tensor &expected, std::span<const float> actual, double factor = 1);
Comparison compare(const Tensor &expected, std::span<const std::int32_t> actual, double factor = 1);
Comparison compare(const Tensor &expected, std::span<const std::int8_t> actual, double factor = 1);
/// Booleans.
Comparison compare(const Tensor &expected, std::span<const std::uint8_t> actual, double factor = 1);

/// The share of elements whose bound says something: error <= 1e-3 (|value| + the mean |value| of the tensor), of f16
/// and bf16 four roundings of that instead, or a whole number, an infinity or a NaN that is determined. 1 is best; a
/// check at 0 cannot fail.
double tightShare(const Tensor &tensor);

} // namespace kiln::interpreter
