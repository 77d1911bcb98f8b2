// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/Compile.h"

#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/Abi.h"
#include "targets/cuda/Loops.h"
#include "targets/cuda/Stub.h"

namespace kiln::cuda {

using namespace mlir;

static std::optional<SchedulePoint> resolvePoint(func::FuncOp kernel, const SchedulePoint *point) {
  std::string error;
  const Schedulable schedulable = describeLoops();
  std::optional<SchedulePoint> resolved = resolve(schedulable.space, point, error);
  if (!resolved)
    kernel.emitError() << schedulable.strategy << " " << error;
  return resolved;
}

FailureOr<DevicePlan> planKernel(func::FuncOp kernel, const SchedulePoint *point) {
  std::optional<SchedulePoint> resolved = resolvePoint(kernel, point);
  if (!resolved)
    return failure();
  return planLoops(kernel, *resolved);
}

namespace {

class CudaCompiler : public KernelCompiler {
public:
  CudaCompiler(std::string hostTriple, std::string hostCpu)
      : hostTriple(std::move(hostTriple)), hostCpu(std::move(hostCpu)) {}

  const KernelAbi &abi() const override { return cudaAbi(); }

  Schedulable describe(func::FuncOp) const override { return describeLoops(); }

  FailureOr<KernelObject> compile(func::FuncOp kernel, StringRef symbol, const SchedulePoint *point) const override {
    FailureOr<DevicePlan> plan = planKernel(kernel, point);
    if (failed(plan))
      return failure();
    llvm::Expected<std::string> object = compileStub(*plan, kernel, symbol, hostTriple, hostCpu);
    if (!object)
      return kernel.emitError() << "the kernel has no host code: " << llvm::toString(object.takeError());
    return KernelObject{std::move(*object), plan->scratchBytes, describeLoops().strategy, *resolvePoint(kernel, point)};
  }

  /// Stmt: the functions as MLIR; Assembly: the PTX of each image.
  FailureOr<std::string> print(func::FuncOp kernel, StringRef, KernelText form,
                               const SchedulePoint *point) const override {
    FailureOr<DevicePlan> plan = planKernel(kernel, point);
    if (failed(plan))
      return failure();
    if (form == KernelText::Stmt)
      return plan->text;
    std::string text;
    for (const Image &image : plan->images)
      text += image.text;
    return text;
  }

private:
  std::string hostTriple, hostCpu;
};

} // namespace

std::unique_ptr<KernelCompiler> createKernelCompiler(std::string hostTriple, std::string hostCpu) {
  return std::make_unique<CudaCompiler>(std::move(hostTriple), std::move(hostCpu));
}

} // namespace kiln::cuda
