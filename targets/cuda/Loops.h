// SPDX-License-Identifier: Apache-2.0
//
// The fallback strategy for every kernel stage: a thread for each element that is stored, with reductions in a loop.
#pragma once

#include "targets/cuda/plan/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StageStrategy> matchLoops(const StageContext &context);

} // namespace kiln::cuda
