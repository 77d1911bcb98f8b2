// SPDX-License-Identifier: Apache-2.0
//
// Parts of tensors, and tensors of parts: what loops, states and joined parameters do on the host's side.
#pragma once

#include "compiler/verify/ModuleInterpreter.h"

namespace kiln::verify {

/// The elements [start, start + extent) of the axis.
Tensor takeRange(const Tensor &x, int axis, std::int64_t start, std::int64_t extent);
/// One element of the first axis, without it.
Tensor takeStep(const Tensor &x, std::int64_t step);
/// Along a new first axis.
Tensor stack(const std::vector<SharedTensor> &slices);
/// Along the axis, one after another.
Tensor join(const std::vector<SharedTensor> &parts, std::size_t axis);
/// The same elements in another shape.
Tensor reshaped(const Tensor &x, const TensorShape &shape);

} // namespace kiln::verify
