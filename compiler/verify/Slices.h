// SPDX-License-Identifier: Apache-2.0
//
// Slices and concatenations of tensors, for loops, states and joined parameters.
#pragma once

#include "compiler/verify/ModuleInterpreter.h"

namespace kiln::verify {

/// Returns the elements [start, start + extent) of the axis.
Tensor takeRange(const Tensor &x, int axis, std::int64_t start, std::int64_t extent);
/// Returns one element of the first axis, without that axis.
Tensor takeStep(const Tensor &x, std::int64_t step);
/// Stacks the slices along a new first axis.
Tensor stack(const std::vector<SharedTensor> &slices);
/// Concatenates the parts along the axis.
Tensor join(const std::vector<SharedTensor> &parts, std::size_t axis);
/// Returns the same elements in another shape.
Tensor reshaped(const Tensor &x, const TensorShape &shape);

} // namespace kiln::verify
