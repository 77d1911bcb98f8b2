// SPDX-License-Identifier: Apache-2.0
//
// The machine that a measurement was taken on, as tuning files name it: what decides which schedule is best. A build
// never looks at the machine that it runs on; only tuning does.
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
  std::string isa; // name of the target that was measured, "x86-64-v4"
  int64_t cores = 0;
  int64_t l1Bytes = 0, l2Bytes = 0, l3Bytes = 0; // data caches as one core sees them; 0: none
  std::string gpu;                               // "NVIDIA-H100-80GB-HBM3"; empty: a CPU
  int64_t capability = 0;                        // 80 is 8.0
  int64_t memoryBytes = 0;                       // of the GPU
  auto operator<=>(const Machine &) const = default;

  bool isGpu() const { return !gpu.empty(); }
};

/// A GPU as the driver tells of it: blanks and signs of the name become "-", memory is rounded to whole GiB, or to MiB
/// where it is less than one, since drivers keep more or less of it.
Machine makeGpu(llvm::StringRef isa, llvm::StringRef name, int64_t capability, int64_t memoryBytes);

/// Fused multiply-adds of f32 that a multiprocessor of that capability starts in a cycle, on CUDA cores.
int64_t gpuLanes(int64_t capability);

/// "x86-64-v4/c2/l1:32K/l2:1M/l3:32M", "cuda/NVIDIA-H100-80GB-HBM3/9.0/m:79G".
std::string toString(const Machine &machine);
/// Nothing if the text is not of that form.
std::optional<Machine> parseMachine(llvm::StringRef text);

/// The folder with Linux's descriptions of the CPUs.
inline constexpr char cpuFolder[] = "/sys/devices/system/cpu";

/// This machine, for measurements of code for `isa`.
Machine detectMachine(llvm::StringRef isa, const std::string &folder = cpuFolder);

/// Any machine: of so many CPUs, with files that `read` gives the text of, which is empty where there is none.
Machine detectMachine(llvm::StringRef isa, int64_t cpus, const std::string &folder,
                      llvm::function_ref<std::string(const std::string &path)> read);

} // namespace kiln
