// SPDX-License-Identifier: Apache-2.0
//
// Derivatives by central differences, with which gradients are compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "llvm/ADT/STLFunctionalExtras.h"

namespace kiln::verify {

/// How far a derivative of this size may be from one by central differences. `scale`: the size of the gradient's
/// elements.
inline double derivativeTolerance(double scale, double derivative) {
  return 1e-6 * std::max(scale, std::abs(derivative));
}

/// Returns the derivative at 0 of a function that is evaluated in f64, by Richardson extrapolation from two steps;
/// nullopt if both disagree: a kink or a jump is between them.
inline std::optional<double> centralDifference(llvm::function_ref<double(double)> function, double scale) {
  auto difference = [&](double h) { return (function(h) - function(-h)) / (2 * h); };
  const double near = difference(1e-5), far = difference(2e-5);
  if (!(std::abs(near - far) <= derivativeTolerance(scale, near)))
    return std::nullopt;
  return (4 * near - far) / 3;
}

} // namespace kiln::verify
