// SPDX-License-Identifier: Apache-2.0
//
// Predicts the cost of calls of a library's entries on a cluster, from data in the manifest: the operations and bytes
// of each kernel, and the communication of its ranks. The cost of pipeline stages and replicas is predicted from that
// of a single one, as only that is read.
#pragma once

#include "compiler/inspect/Inspection.h"
#include "tools/scale/Cluster.h"

namespace kiln {

/// How a library for a number of ranks is replicated on more devices.
struct Placement {
  int64_t stages = 1;       // pipeline stages, which share layers, weights and arena evenly
  int64_t microbatches = 1; // calls that pass through the pipeline in sequence
  int64_t interleave = 1;   // model chunks per stage
  int64_t replicas = 1;     // data-parallel replicas, which sum the gradients of entries that change weights
  bool overlaps = false;    // whether gradient sums overlap with the backward pass
  std::string type = "f32"; // type of the peak that kernels use
};

/// The time in seconds of a step, with one call per micro-batch on each replica, as a sum of parts.
struct EntryCost {
  std::string name;
  double kernels = 0, exchanges = 0, sends = 0, bubble = 0, gradients = 0;
  double operations = 0;          // operations of all devices
  double exchangedBytes = 0;      // sent by one rank to the other ranks of its call
  double memoryBytes = 0;         // weights and arena of a device
  int64_t devices = 1, calls = 1; // calls: sum over all replicas

  double seconds() const { return kernels + exchanges + sends + bubble + gradients; }
};

/// Returns the cost of each entry. Fails if the placement is invalid, or if the cluster has no peak of the type.
llvm::Expected<std::vector<EntryCost>> predictLibrary(const Inspection &inspection, const Cluster &cluster,
                                                      const Placement &placement);

/// Returns the costs as a table.
std::string printCosts(const Inspection &inspection, const Cluster &cluster, const Placement &placement,
                       const std::vector<EntryCost> &costs);

} // namespace kiln
