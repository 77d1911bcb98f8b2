// SPDX-License-Identifier: Apache-2.0
//
// Quantisation of rows to int8 before they are multiplied by int8 weights (dsl/SPEC.md, Stored weights). Implemented
// from the specification, independently of the compiler's ops.
#pragma once

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

/// Returns for each row of x (its last axis) m / 127 in f32, where m is the largest magnitude; NaN if the row has a NaN
/// or an infinity.
Tensor rowScales(const Tensor &x);

/// Returns x / (scale of its row) in f32, rounded to the nearest integer in [-127, 127], ties to even; 0 where the
/// scale is 0. The result is i8; undetermined within a row whose scale is NaN.
Tensor quantizeRows(const Tensor &x, const Tensor &scales);

/// Returns the numbers that the quantised rows and scales represent, their product, as f32.
Tensor throughInt8(const Tensor &x);

} // namespace kiln::interpreter
