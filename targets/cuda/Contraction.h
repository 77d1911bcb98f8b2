// SPDX-License-Identifier: Apache-2.0
//
// The strategy of products of matrices with many rows: a block of threads computes a tile of the sums from tiles of
// the inputs in shared memory, then what the step makes of them.
#pragma once

#include "targets/cuda/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StepStrategy> matchContraction(const StepContext &context);

} // namespace kiln::cuda
