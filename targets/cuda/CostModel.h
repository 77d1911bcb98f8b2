// SPDX-License-Identifier: Apache-2.0
//
// What bounds a kernel on a GPU, computed from its schedule and not measured: bytes, operations and shared memory of
// each launch, and how many blocks a multiprocessor holds. It is for people, and it says which points of a search space
// a GPU has no room for.
//
// It counts each tensor that a launch reads or writes once, as if caches held it until it is not needed any more, and
// each operation once, also where it is computed again.
#pragma once

#include "compiler/schedule/Machine.h"
#include "targets/cuda/Plan.h"
#include "targets/cuda/Strategy.h"

namespace kiln::cuda {

/// A GPU, by its data sheet.
struct Gpu {
  std::string name;
  int64_t capability = 80;
  int64_t multiprocessors = 0;
  double clock = 0;          // of a second
  double bytesPerSecond = 0; // of its memory
  // Of a multiprocessor:
  int64_t lanes = 0;    // fused multiply-adds of f32 in a cycle
  int64_t mmaLanes = 0; // those of f16 and bf16 on tensor cores, to which mma.sync comes close before 9.0 alone
  int64_t threads = 0, blocks = 0, registers = 65536;
  int64_t sharedBytes = 0; // with 1 KiB a block that the driver keeps
};

/// An A100 for 8.x, an H100 from 9.0 on, with the limits of the capability.
Gpu gpuOf(int64_t capability);

/// Multiply-adds of a multiprocessor in a cycle.
double lanesOf(const Gpu &gpu, const BlockNeeds &needs);

/// Until a kernel that does nothing has ended, where others wait for it: some microseconds.
constexpr double launchSeconds = 2e-6;

/// The most dynamic shared memory of a block.
int64_t mostSharedBytes(int64_t capability);

enum class Bound { Bytes, Operations, SharedMemory, Launch };
/// "bytes", "operations", "shared memory", "launch".
llvm::StringRef toString(Bound bound);

struct LaunchCost {
  std::string strategy;
  int64_t blocks = 0, threads = 0, sharedBytes = 0;
  int64_t registers = 0;            // of a thread, an estimate; 0: none
  int64_t blocksAtOnce = 0;         // of a multiprocessor; 0: a block does not fit
  double occupancy = 0;             // of a multiprocessor's threads, while there are enough blocks
  double bytes = 0, operations = 0; // a fused multiply-add is two
  double seconds = 0;               // at the least
  Bound bound = Bound::Launch;
};

/// A launch for each function that the point's strategies build, at these extents; none where Halide makes the kernel.
/// Emits a diagnostic on failure.
mlir::FailureOr<std::vector<LaunchCost>> costOf(mlir::func::FuncOp kernel, const SchedulePoint *point,
                                                llvm::ArrayRef<int64_t> extents, const Gpu &gpu);

/// A line a launch, with a mark that nothing was measured.
std::string toString(llvm::ArrayRef<LaunchCost> costs, const Gpu &gpu);

/// The rules that a GPU of this capability sets besides those of the strategies: threads, registers by an estimate, and
/// shared memory of a block, of mapped forms on 9.0, too.
std::vector<TuningRule> limitsOf(mlir::func::FuncOp kernel, int64_t capability);

/// Keys of the kernel's parameters that are without effect on a GPU of this capability, since the form of its steps
/// that they are of is not launched there.
std::vector<std::string> idleParameters(mlir::func::FuncOp kernel, int64_t capability);

/// How many times the multiply-adds of CUDA cores the GPU has for the kernel: of tensor cores, where those do it.
double multiplyRate(mlir::func::FuncOp kernel, int64_t capability);

} // namespace kiln::cuda
