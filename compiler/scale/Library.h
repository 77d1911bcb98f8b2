// SPDX-License-Identifier: Apache-2.0
//
// What a call of a library's entries takes on a cluster, counted from what the compiler made: the operations and bytes
// of each kernel, and what its ranks exchange, both from the manifest. What stages of a pipeline and replicas do is
// predicted from that of one, which is all that is read.
#pragma once

#include "compiler/inspect/Inspection.h"
#include "compiler/scale/Cluster.h"

namespace kiln {

/// How a library for so many ranks is called on more devices.
struct Placement {
  int64_t stages = 1;       // of a pipeline; layers, weights and arena are shared out evenly
  int64_t microbatches = 1; // calls that go through the stages one behind the other
  int64_t interleave = 1;   // parts of the model that a stage has
  int64_t replicas = 1;     // of all that; of entries that change weights, gradients are added up
  bool overlaps = false;    // while others are computed
  std::string type = "f32"; // of the peak that kernels have
};

/// Seconds of a step: so many calls as there are micro-batches, on each replica. The parts add up.
struct EntryCost {
  std::string name;
  double kernels = 0, exchanges = 0, sends = 0, bubble = 0, gradients = 0;
  double operations = 0;          // of all devices
  double exchangedBytes = 0;      // that a rank sends to those of its call
  double memoryBytes = 0;         // weights and arena of a device
  int64_t devices = 1, calls = 1; // calls: of all replicas

  double seconds() const { return kernels + exchanges + sends + bubble + gradients; }
};

/// Of each entry. Fails on a placement that is none, and if the cluster has no peak of the type.
llvm::Expected<std::vector<EntryCost>> predictLibrary(const Inspection &inspection, const Cluster &cluster,
                                                      const Placement &placement);

/// A table of them.
std::string printCosts(const Inspection &inspection, const Cluster &cluster, const Placement &placement,
                       const std::vector<EntryCost> &costs);

} // namespace kiln
