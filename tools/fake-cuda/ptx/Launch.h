// SPDX-License-Identifier: Apache-2.0
//
// Runs kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "Memory.h"
#include "Module.h"

namespace kiln::ptx {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return static_cast<std::uint64_t>(x) * y * z; }
};

struct LaunchConfig {
  Dim3 grid, block;
  Dim3 cluster;                    ///< blocks of a cluster
  std::uint32_t dynamicShared = 0; ///< bytes
  bool isDependentLaunch = false;  ///< programmatic dependent launch: it may begin before the previous kernel has ended
  /// Number of warp instructions after which the kernel is considered hung.
  std::uint64_t limit = 2'000'000'000;
  std::uint32_t maxShared = 227 * 1024; ///< limit of bytes per block
};

struct LaunchResult {
  /// Empty if the kernel ran to its end. Otherwise the kernel, the line and its instruction, the block, the thread, and
  /// the error.
  std::string error;
  unsigned line = 0; ///< line of the instruction; 0: none
  std::uint64_t warpInstructions = 0, threadInstructions = 0;
  /// Extra wavefronts of shared-memory accesses due to bank conflicts.
  std::uint64_t bankConflicts = 0;
  explicit operator bool() const { return error.empty(); }
};

/// Runs all blocks, one cluster after the other in the order of their ids. `parameters` have the layout of the entry.
/// After an error, memory is as the kernel left it.
LaunchResult launch(const LoadedModule &module, std::string_view entry, const LaunchConfig &config,
                    std::span<const std::byte> parameters, Memory &memory);

} // namespace kiln::ptx
