// SPDX-License-Identifier: Apache-2.0
//
// Weights of f32 that are stored in fewer bits (dsl/SPEC.md, Stored weights): the numbers that the stored ones stand
// for. Read from the specification, beside what the run time does when it binds weights.
#pragma once

#include <vector>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

/// How a weight is stored.
struct Storage {
  ElementType element = ElementType::f16;
  std::int64_t dim = 0;   // along which the outputs lie
  std::int64_t group = 0; // of i4: how many of the other elements, in row major order, have one scale
  bool zero = false;      // of i4: whether a number of its own stands for 0
};

/// Each number of a row major tensor of f32 becomes the one that it is stored as.
///
/// - f16, bf16: the nearest one, ties to even; numbers below the normal ones are kept.
/// - i8: q * s in f32. For each index of dimension `dim`, s = m / 127 in f32, m being the largest magnitude there;
///   q = w / s in f32, rounded to the nearest whole number of [-127, 127], ties to even. 0 where s is 0.
/// - i4: (q - z) * s for each group of each index, s being an f16. Without zeros z = 8 and s = m / -8, m being the
/// first
///   of the numbers whose magnitude is the largest. With them s = (h - l) / 15, l and h being the least and the largest
///   number and 0, z = -l / s rounded to the nearest whole number of [0, 15]. q = w / s, rounded so, + z, in [0, 15].
///
/// Throws std::runtime_error for a number that cannot be stored, NaN and infinities among them, for another element
/// type, and where `shape` has not as many elements, no such dimension or no whole groups.
void roundToStored(std::vector<double> &values, const TensorShape &shape, const Storage &storage);

} // namespace kiln::interpreter
