// SPDX-License-Identifier: Apache-2.0
//
// Estimates each kernel's share of the model's time, and the expected gain of tuning the kernel further.
#pragma once

#include "compiler/tuner/Display.h"
#include "compiler/tuner/KernelsToTune.h"

namespace kiln {

/// The minimum expected gain, as a share of the model's time, for which a kernel is tuned further.
constexpr double leastGain = 0.0005;

/// Sets the shares and gains of `state`. A gain is the share of the time, times the distance to the limit of the
/// machine, decaying with every candidate since the last improvement; 0 for tasks that are done, not measured yet or
/// left out.
void estimateGains(TuneState &state, llvm::ArrayRef<KernelToTune> kernels, const std::vector<bool> &isLeftOut);

} // namespace kiln
