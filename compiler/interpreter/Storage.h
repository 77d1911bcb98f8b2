// SPDX-License-Identifier: Apache-2.0
//
// Quantised f32 weights (dsl/SPEC.md, Quantised weights): the numbers that the quantised ones represent. The formats
// are those of formats.def; the rounding is implemented from the specification, independently of the runtime library's
// when it binds weights.
#pragma once

#include <vector>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

/// The storage format of a weight.
struct Storage {
  ElementType element = ElementType::f16;
  std::int64_t dim = 0;   // the output dimension
  std::int64_t group = 0; // the number of other elements, in row-major order, that share a scale; 0: all of them
  bool zero = false;      // whether each group has a zero point
};

/// Replaces each number of a row-major f32 tensor by the one as which it is stored.
///
/// - f16, bf16: the nearest number, ties to even; subnormal numbers are kept.
/// - i8: q * s in f32. For each index of dimension `dim`, s = m / 127 in f32, where m is the largest magnitude there; q
///   = w / s in f32, rounded to the nearest integer in [-127, 127], ties to even. 0 where s is 0.
/// - f8e4m3: the same with s = m / 448, and w / s rounded to the nearest e4m3.
/// - f4e2m1: q * s for each group of each index, where s is 2 to the power of floor(log2 m) - 2, at least 2^-127, and q
///   is w / s rounded to the nearest e2m1, at most 6.
/// - i4: (q - z) * s for each group of each index, where s is an f16. Without zero points z = 8 and s = m / -8, where m
///   is the first of the numbers with the largest magnitude. With zero points s = (h - l) / 15, where l and h are the
///   minimum and maximum of the numbers and 0, and z = -l / s rounded to the nearest integer in [0, 15]. q = w / s,
///   rounded likewise, + z, in [0, 15].
///
/// Throws std::runtime_error for a number that cannot be stored, including NaN and infinities, for an unsupported
/// element type, and if `shape` has another number of elements, no such dimension, or a size that is no multiple of the
/// group.
void roundToStored(std::vector<double> &values, const TensorShape &shape, const Storage &storage);

} // namespace kiln::interpreter
