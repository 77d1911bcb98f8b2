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
/// - i8 and f8e4m3 in groups: the same for each group of each index; the scale of an i8 is rounded to f16.
/// - f4e2m1 in groups of 16: q * (s * t) for each group of each index. t = m / 2688 in f32, where m is the largest
///   magnitude of the index, and s is the largest of the group / 6 / t, rounded to the nearest e4m3.
/// - u4: d * c * q - e * b, where d and e are f16 of a block of 256 and c and b integers in [0, 63] of a group of 32.
/// With
///   l and h as for i4, the group wants the step (h - l) / 15 and the offset -l; d and e are the largest of these in
///   the block / 63, c = step / d and b = offset / e, rounded, and q = (w + e * b) / (d * c), rounded, in [0, 15].
/// - i6: d * c * q, where d is an f16 of a block of 256 and c an integer in [-128, 127] of a group of 16. With m as for
///   i4, the group wants the step m / -32; d is the first of the largest magnitude in the block / -128, c = step / d,
///   rounded, and q = w / (d * c), rounded, in [-32, 31].
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
