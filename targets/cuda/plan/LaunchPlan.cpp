// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/plan/LaunchPlan.h"

namespace kiln::cuda {

DeviceFunction makeFunction(const std::string &name, const tile::KernelLaunch &launch, int64_t sharedBytes) {
  return {name, uint32_t(launch.threads), uint32_t(sharedBytes), uint32_t(launch.cluster), launch.isDependentLaunch};
}

} // namespace kiln::cuda
