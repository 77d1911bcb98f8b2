// SPDX-License-Identifier: Apache-2.0
//
// The functions of functions.h in f64 as libmvec computes them, for four numbers at a time. They exist if
// KILN_TEST_LIBMVEC is defined, and need AVX2 and FMA.
#pragma once

#include "errors.h"

namespace kiln::testing::lanes {

/// Returns the largest errors of n results, a multiple of 4.
Error<double> largestErrors(std::size_t function, const float *x, const float *y, std::size_t n);
/// Computes a function of testedFunctions for n numbers, a multiple of 4.
void compute(std::size_t function, const float *x, double *y, std::size_t n);

} // namespace kiln::testing::lanes
