// SPDX-License-Identifier: Apache-2.0
//
// The strategy for rows: softmax, norms, sums and maxima along what lies side by side in memory. A warp or a block has
// a row, and does all consecutive steps that work along it.
#pragma once

#include "targets/cuda/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StepStrategy> matchRows(const StepContext &context);

} // namespace kiln::cuda
