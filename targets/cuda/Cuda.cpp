// SPDX-License-Identifier: Apache-2.0
//
// The properties of the GPU target, for each kind of CPU that a GPU is connected to.
#include "targets/cuda/Cuda.h"

#include "compiler/object/Object.h"
#include "runtime/src/core/model.h"
#include "targets/cuda/Compile.h"
#include "targets/passes/Passes.h"

namespace kiln {

static std::unique_ptr<Target> createCudaTarget(const CpuName &host) {
  TargetInfo info;
  info.name = "cuda";
  info.hostTriple = host.triple;
  info.hostCpu = host.cpu;
  info.memorySpace = KILN_MEMORY_DEVICE;
  info.copyRows = "kiln_cuda_copy_rows";
  info.backend = "kiln_cuda_backend";
  info.hasTf32 = true;
  // Compute capability 8.0: a vector is a warp.
  info.machine.vectorBytes = 128;
  info.machine.vectorRegisters = 255;
  info.machine.l1Bytes = 192 << 10;
  info.machine.l2Bytes = info.machine.l3Bytes = 40 << 20;

  TargetHooks hooks;
  hooks.writesStates = hooks.normsSingleRows = hooks.joinsSums = true;
  hooks.addKernelPasses = [](mlir::OpPassManager &passes) {
    mlir::kiln::addMarkWeights(passes);
    mlir::kiln::addExpandMath(passes);
  };

  std::vector<std::unique_ptr<KernelCompiler>> compilers;
  compilers.push_back(cuda::createKernelCompiler(info.hostTriple, info.hostCpu));
  return std::make_unique<Target>(std::move(info), std::move(hooks), std::move(compilers));
}

std::vector<std::unique_ptr<Target>> createCudaTargets() {
  std::vector<std::unique_ptr<Target>> targets;
  targets.push_back(createCudaTarget({"x86_64-unknown-linux-gnu", "x86-64"}));
  targets.push_back(createCudaTarget({"aarch64-unknown-linux-gnu", "generic"})); // Grace, Jetson
  return targets;
}

} // namespace kiln
