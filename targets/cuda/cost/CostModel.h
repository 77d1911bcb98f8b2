// SPDX-License-Identifier: Apache-2.0
//
// A roofline model of kernels on a GPU, computed from the schedule and not measured: bytes, operations and shared
// memory of each launch, and how many blocks a multiprocessor holds. It informs people, and it finds the schedule
// configurations that do not fit on a GPU.
//
// The model counts each tensor that a launch reads or writes once, as if caches held it as long as it is needed, and
// each operation once, even if it is recomputed.
#pragma once

#include "compiler/schedule/Machine.h"
#include "targets/cuda/plan/LaunchPlan.h"
#include "targets/cuda/plan/Strategy.h"

namespace kiln::cuda {

/// A GPU, with the numbers of its data sheet.
struct Gpu {
  std::string name;
  int64_t capability = 80;
  int64_t multiprocessors = 0;
  double clock = 0;          // cycles per second
  double bytesPerSecond = 0; // memory bandwidth
  // Limits of a multiprocessor:
  int64_t lanes = 0;    // f32 fused multiply-adds per cycle
  int64_t mmaLanes = 0; // the same for f16 and bf16 on tensor cores; only before 9.0 mma.sync comes close to it
  int64_t threads = 0, blocks = 0, registers = 65536;
  int64_t sharedBytes = 0; // with 1 KiB for each block that the driver reserves
};

/// Returns an A100 for 8.x, an H100 from 9.0 on, with the limits of the capability.
Gpu gpuOf(int64_t capability);

/// Returns the multiply-adds of a multiprocessor per cycle.
double lanesOf(const Gpu &gpu, const BlockNeeds &needs);

/// The duration of an empty kernel that others wait for: some microseconds.
constexpr double launchSeconds = 2e-6;

/// Returns the largest dynamic shared memory of a block.
int64_t mostSharedBytes(int64_t capability);

enum class Bound { Bytes, Operations, SharedMemory, Launch };
/// Returns "bytes", "operations", "shared memory" or "launch".
llvm::StringRef toString(Bound bound);

struct LaunchCost {
  std::string strategy;
  int64_t blocks = 0, threads = 0, sharedBytes = 0;
  int64_t registers = 0;            // per thread, an estimate; 0: unknown
  int64_t blocksAtOnce = 0;         // per multiprocessor; 0: a block does not fit
  double occupancy = 0;             // fraction of a multiprocessor's threads, while there are enough blocks
  double bytes = 0, operations = 0; // a fused multiply-add counts as two
  double seconds = 0;               // lower bound
  Bound bound = Bound::Launch;
};

/// Estimates a launch for each function that the strategies build for a schedule configuration, at these extents; none
/// if Halide makes the kernel. Emits a diagnostic on failure.
mlir::FailureOr<std::vector<LaunchCost>> costOf(mlir::func::FuncOp kernel, const ScheduleConfig *config,
                                                llvm::ArrayRef<int64_t> extents, const Gpu &gpu);

/// Returns a line for each launch, which says that nothing was measured.
std::string toString(llvm::ArrayRef<LaunchCost> costs, const Gpu &gpu);

/// Returns the tuning rules that a GPU of this capability adds to those of the strategies: limits of threads,
/// estimated registers and shared memory of a block, including those of TMA variants on 9.0.
std::vector<TuningRule> limitsOf(mlir::func::FuncOp kernel, int64_t capability);

/// Returns the keys of the kernel's parameters that have no effect on a GPU of this capability, since it does not
/// launch the variant that they configure.
std::vector<std::string> idleParameters(mlir::func::FuncOp kernel, int64_t capability);

/// Returns the GPU's multiply-add rate for the kernel relative to that of CUDA cores; more than 1 if tensor cores do
/// the work.
double multiplyRate(mlir::func::FuncOp kernel, int64_t capability);

} // namespace kiln::cuda
