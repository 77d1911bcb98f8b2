// SPDX-License-Identifier: Apache-2.0
//
// The machine of a measurement, as tuning files name it: the properties that determine which schedule is best. A build
// never inspects the machine on which it runs; only tuning does.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

/// A CPU, or a GPU, which has a name and no cores.
struct Machine {
  std::string isa; // name of the measured target, "x86-64-v4"
  int64_t cores = 0;
  int64_t l1Bytes = 0, l2Bytes = 0, l3Bytes = 0; // data cache sizes as seen by one core; 0: none
  std::string gpu;                               // "NVIDIA-H100-80GB-HBM3"; empty: a CPU
  int64_t capability = 0;                        // compute capability: 80 is 8.0
  int64_t memoryBytes = 0;                       // of the GPU
  auto operator<=>(const Machine &) const = default;

  bool isGpu() const { return !gpu.empty(); }
};

/// Returns a GPU as the driver describes it: blanks and special characters of the name become "-", memory is rounded to
/// whole GiB, or to MiB below one GiB, since drivers reserve different amounts of it.
Machine makeGpu(llvm::StringRef isa, llvm::StringRef name, int64_t capability, int64_t memoryBytes);

/// Returns the number of f32 fused multiply-adds that a multiprocessor of that capability issues per cycle on CUDA
/// cores.
int64_t gpuLanes(int64_t capability);

/// Formats "x86-64-v4/c2/l1:32K/l2:1M/l3:32M", "cuda/NVIDIA-H100-80GB-HBM3/9.0/m:79G".
std::string toString(const Machine &machine);
/// Returns nullopt if the text does not have that form.
std::optional<Machine> parseMachine(llvm::StringRef text);

/// The directory with Linux's descriptions of the CPUs.
inline constexpr char cpuFolder[] = "/sys/devices/system/cpu";

/// Detects this machine, for measurements of code for `isa`.
Machine detectMachine(llvm::StringRef isa, const std::string &folder = cpuFolder);

/// Describes any machine with that number of CPUs; `read` returns the text of a file, which is empty if there is none.
Machine detectMachine(llvm::StringRef isa, int64_t cpus, const std::string &folder,
                      llvm::function_ref<std::string(const std::string &path)> read);

} // namespace kiln
