// SPDX-License-Identifier: Apache-2.0
#include "manifest_scale.h"

#include "require.h"
#include "tools/scale/Library.h"

void kiln_fuzz::predict(const kiln::Inspection &inspection) {
  kiln::Cluster cluster;
  cluster.device.peaks["f32"] = 1e12;
  cluster.device.memoryBandwidth = 1e11;
  cluster.node = cluster.network = {1e-6, 1e9};
  if (llvm::Expected<std::vector<kiln::EntryCost>> costs = kiln::predictLibrary(inspection, cluster, {}))
    require(!kiln::printCosts(inspection, cluster, {}, *costs).empty(), "costs");
  else
    require(!llvm::toString(costs.takeError()).empty(), "words that say why nothing is predicted");
}
