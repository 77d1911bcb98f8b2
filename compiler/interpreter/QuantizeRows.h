// SPDX-License-Identifier: Apache-2.0
//
// Rows that are rounded to int8 before they meet weights of int8 (dsl/SPEC.md, Stored weights). Read from the
// specification, beside the ops of the compiler.
#pragma once

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

/// Of each row of x, its last axis: m / 127 in f32, m being the largest magnitude; NaN if the row has a NaN or an
/// infinity.
Tensor rowScales(const Tensor &x);

/// x / scale of its row in f32, rounded to the nearest whole number of [-127, 127], ties to even; 0 where the scale is
/// 0. As i8; not determined within a row whose scale is NaN.
Tensor quantizeRows(const Tensor &x, const Tensor &scales);

/// The numbers that the two stand for, their product, as f32.
Tensor throughInt8(const Tensor &x);

} // namespace kiln::interpreter
