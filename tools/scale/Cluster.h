// SPDX-License-Identifier: Apache-2.0
//
// Describes machines for the cost model, as read from a file: the rates of a device, and the links between devices. All
// numbers that are not counted from a model are here, with their source.
#pragma once

#include "tools/scale/Collectives.h"

#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace kiln {

/// A GPU, or a process on CPUs. Kernels reach `fraction` of a peak, and `memoryFraction` of the memory bandwidth.
struct Device {
  std::string name;
  std::map<std::string, double> peaks; // operations per second, by type: "f16"
  double fraction = 1;
  double memoryBytes = 0;     // capacity
  double memoryBandwidth = 0; // bytes per second
  double memoryFraction = 1;
};

struct Cluster {
  std::string name, source;
  Device device;
  int64_t devicesInNode = 1;
  Link node;    // between two devices of a node; per device
  Link network; // between nodes; the sum over all adapters of a node

  /// Returns the seconds that a kernel takes: the maximum of the times for its operations and for its bytes. `type` is
  /// one of the peaks.
  double kernelSeconds(const std::string &type, double operations, double bytes) const;

  /// Returns the link of each device to the next one of its group while all groups of the same kind communicate. A
  /// group consists of `size` devices with distance `stride`; devices are numbered node by node. If a group has several
  /// devices in a node, one of them sends to the next node.
  Link linkOf(int64_t stride, int64_t size) const;
};

/// Parses a file of examples/clusters/machines. `file` is its name in error messages.
llvm::Expected<Cluster> readCluster(llvm::StringRef text, llvm::StringRef file);

/// Reads and parses the file at `path`.
llvm::Expected<Cluster> loadCluster(const std::string &path);

} // namespace kiln
