// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/Compile.h"

#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/Abi.h"
#include "targets/cuda/FewRows.h"
#include "targets/cuda/Ptx.h"
#include "targets/cuda/Strategy.h"
#include "targets/cuda/Stub.h"
#include "targets/cuda/halide/ByHalide.h"

namespace kiln::cuda {

using namespace mlir;

/// The kernel's search space. `strategies` are those of the placement's steps.
static Schedulable describe(func::FuncOp kernel, const Placement &placement, const StepStrategies &strategies) {
  Schedulable result = describe(strategies);
  const bool isLoops = llvm::all_of(strategies, [](const auto &strategy) { return strategy->name() == "loops"; });
  if (isLoops && canBeByHalide(kernel, placement))
    addHalideParameters(kernel, result.space);
  return result;
}

/// The point completed by the presets; nothing after a diagnostic.
static std::optional<SchedulePoint> resolvePoint(func::FuncOp kernel, const Schedulable &schedulable,
                                                 const SchedulePoint *point) {
  std::string error;
  std::optional<SchedulePoint> resolved = resolve(schedulable.space, point, error);
  if (!resolved)
    kernel.emitError() << schedulable.strategy << " " << error;
  return resolved;
}

FailureOr<DevicePlan> planKernel(func::FuncOp kernel, const SchedulePoint *point) {
  if (failed(checkKernel(kernel)))
    return failure();
  Placement placement(kernel);
  const StepStrategies strategies = chooseStrategies(kernel, placement);
  DevicePlan plan;
  const Schedulable schedulable = describe(kernel, placement, strategies);
  std::optional<SchedulePoint> resolved = resolvePoint(kernel, schedulable, point);
  if (!resolved)
    return failure();
  plan.strategy = schedulable.strategy;
  plan.schedule = *resolved;
  if (auto byHalide = plan.schedule.find("halide"); byHalide != plan.schedule.end() && byHalide->second) {
    if (failed(planByHalide(kernel, plan)))
      return failure();
    return plan;
  }
  plan.scratchBytes = placement.scratchBytes;
  DeviceModule device;
  tile::Builder b(device.get());
  for (const auto &strategy : strategies)
    if (failed(strategy->build(b, plan.schedule, plan)))
      return failure();
  plan.text = device.print();
  llvm::Expected<std::string> text = device.compile({"sm_80", "+ptx70"});
  if (!text)
    return kernel.emitError() << "the kernel has no device code: " << llvm::toString(text.takeError());
  plan.images.push_back({std::move(*text), 80, false});
  return plan;
}

namespace {

class CudaCompiler : public KernelCompiler {
public:
  CudaCompiler(std::string hostTriple, std::string hostCpu)
      : hostTriple(std::move(hostTriple)), hostCpu(std::move(hostCpu)) {}

  const KernelAbi &abi() const override { return cudaAbi(); }

  Schedulable describe(func::FuncOp kernel) const override {
    Placement placement(kernel);
    const StepStrategies strategies = chooseStrategies(kernel, placement);
    return cuda::describe(kernel, placement, strategies);
  }

  std::vector<RowVariant> rowVariants(func::FuncOp kernel) const override {
    return fewRowsVariants(kernel, Placement(kernel));
  }

  FailureOr<KernelObject> compile(func::FuncOp kernel, StringRef symbol, const SchedulePoint *point) const override {
    FailureOr<DevicePlan> plan = planKernel(kernel, point);
    if (failed(plan))
      return failure();
    llvm::Expected<std::string> object = compileStub(*plan, kernel, symbol, hostTriple, hostCpu);
    if (!object)
      return kernel.emitError() << "the kernel has no host code: " << llvm::toString(object.takeError());
    return KernelObject{std::move(*object), plan->scratchBytes, plan->strategy, plan->schedule};
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
