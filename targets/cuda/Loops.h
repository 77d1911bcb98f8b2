// SPDX-License-Identifier: Apache-2.0
//
// The strategy that does every step: a thread for each element that is stored, reductions in a loop.
#pragma once

#include "targets/cuda/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StepStrategy> matchLoops(const StepContext &context);

} // namespace kiln::cuda
