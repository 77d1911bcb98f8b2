// SPDX-License-Identifier: Apache-2.0
//
// What each kernel takes of the model's time, and what tuning it further promises of that.
#pragma once

#include "compiler/tuner/Display.h"
#include "compiler/tuner/KernelsToTune.h"

namespace kiln {

/// What a kernel must promise of the model's time to get another turn.
constexpr double leastGain = 0.0005;

/// Sets the shares and gains of `state`: the gain is the share of the time, times the room to what the machine allows,
/// less for every candidate since the last better one; 0 for what is done, not measured yet or left out.
void estimateGains(TuneState &state, llvm::ArrayRef<KernelToTune> kernels, const std::vector<bool> &isLeftOut);

} // namespace kiln
