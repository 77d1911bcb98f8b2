// SPDX-License-Identifier: Apache-2.0
//
// Machines as the model of cost knows them, from a file: what a device does a second, and the links between devices.
// All that is not counted from a model is here, with its source.
#pragma once

#include "compiler/scale/Collectives.h"

#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace kiln {

/// A GPU, or a process on CPUs. Kernels reach `fraction` of a peak, and `memoryFraction` of the memory's rate.
struct Device {
  std::string name;
  std::map<std::string, double> peaks; // operations a second, by type: "f16"
  double fraction = 1;
  double memoryBytes = 0;     // that it has
  double memoryBandwidth = 0; // bytes a second
  double memoryFraction = 1;
};

struct Cluster {
  std::string name, source;
  Device device;
  int64_t devicesInNode = 1;
  Link node;    // between two devices of a node; of each device
  Link network; // between nodes; all adapters of a node together

  /// Seconds that a kernel takes: the longer of its operations and its bytes. `type` is one of the peaks.
  double kernelSeconds(const std::string &type, double operations, double bytes) const;

  /// What each device has to reach the next one of its group, while all groups of the kind are at it. A group takes
  /// every `stride`-th device, `size` of them; devices are numbered through the nodes. Of a group with several devices
  /// in a node, one of these sends to the next node.
  Link linkOf(int64_t stride, int64_t size) const;
};

/// Reads a file of examples/clusters/machines; `file` is what errors call it.
llvm::Expected<Cluster> readCluster(llvm::StringRef text, llvm::StringRef file);

/// The same, of a path.
llvm::Expected<Cluster> loadCluster(const std::string &path);

} // namespace kiln
