// SPDX-License-Identifier: Apache-2.0
//
// The strategy for GEMMs with many rows: a block computes a tile of accumulators from input tiles in shared memory,
// then applies the kernel stage's epilogue.
#pragma once

#include "targets/cuda/plan/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StageStrategy> matchContraction(const StageContext &context);

} // namespace kiln::cuda
