// SPDX-License-Identifier: Apache-2.0
//
// Weights of f32 that are stored in fewer bits (dsl/SPEC.md, Stored weights): the numbers that the stored ones stand
// for. Read from the specification, beside what the run time does when it binds weights.
#pragma once

#include <vector>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

/// Each number of a row major tensor of f32 becomes the one that it is stored as.
///
/// - f16, bf16: the nearest one, ties to even; numbers below the normal ones are kept.
/// - i8: q * s in f32. For each index of dimension `dim`, s = m / 127 in f32, m being the largest magnitude there;
///   q = w / s in f32, rounded to the nearest whole number of [-127, 127], ties to even. 0 where s is 0.
///
/// Throws std::runtime_error for a number that cannot be stored, NaN and infinities among them, for another element
/// type, and where `shape` has not as many elements or no such dimension.
void roundToStored(std::vector<double> &values, const TensorShape &shape, ElementType element, std::int64_t dim);

} // namespace kiln::interpreter
