// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/Compile.h"

#include "compiler/kernel/KernelKey.h"
#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/Abi.h"
#include "targets/cuda/attention/Attention.h"
#include "targets/cuda/cost/CostModel.h"
#include "targets/cuda/gemm/SkinnyGemm.h"
#include "targets/cuda/halide/ByHalide.h"
#include "targets/cuda/plan/HostLauncher.h"
#include "targets/cuda/plan/Strategy.h"
#include "targets/cuda/ptx/DeviceModule.h"

namespace kiln::cuda {

using namespace mlir;

Schedulable describe(func::FuncOp kernel, const Placement &placement, const StageStrategies &strategies) {
  Schedulable result = describe(strategies);
  const bool isLoops = llvm::all_of(strategies, [](const auto &strategy) { return strategy->name() == "loops"; });
  if (isLoops && canBeByHalide(kernel, placement))
    addHalideParameters(kernel, result.space);
  return result;
}

/// Completes the configuration with defaults; returns nullopt after a diagnostic.
static std::optional<ScheduleConfig> resolveConfig(func::FuncOp kernel, const Schedulable &schedulable,
                                                   const ScheduleConfig *config) {
  std::string error;
  std::optional<ScheduleConfig> resolved = resolve(schedulable.space, config, error);
  if (!resolved)
    kernel.emitError() << schedulable.strategy << " " << error;
  return resolved;
}

static FailureOr<Image> compileDevice(func::FuncOp kernel, DeviceModule &device, const Chip &chip, uint32_t capability,
                                      bool isForThatAlone) {
  llvm::Expected<std::string> text = device.compile(chip);
  if (!text)
    return kernel.emitError() << "the kernel has no device code: " << llvm::toString(text.takeError());
  return Image{std::move(*text), capability, isForThatAlone};
}

namespace {

struct PlainChip {
  Chip chip;
  uint32_t capability;
};

/// The images for all GPUs, best first. One is enough if no function uses programmatic dependent launch.
constexpr PlainChip plainChips[] = {{{"sm_90", "+ptx78", true}, 90}, {{"sm_80", "+ptx70"}, 80}};

} // namespace

FailureOr<LaunchPlan> planKernel(func::FuncOp function, const ScheduleConfig *config) {
  const DecomposedKernel decomposed(function);
  func::FuncOp kernel = decomposed.get();
  if (failed(checkKernel(kernel)))
    return failure();
  Placement placement(decomposed);
  const StageStrategies strategies = chooseStrategies(kernel, placement);
  LaunchPlan plan;
  const Schedulable schedulable = describe(kernel, placement, strategies);
  std::optional<ScheduleConfig> resolved = resolveConfig(kernel, schedulable, config);
  if (!resolved)
    return failure();
  plan.strategy = schedulable.strategy;
  plan.schedule = *resolved;
  if (isByHalide(plan.schedule)) {
    if (failed(planByHalide(kernel, plan)))
      return failure();
    return plan;
  }
  plan.scratchBytes = placement.scratchBytes;
  DeviceModule device, tma;
  tile::Builder b(device.get()), tmaBuilder(tma.get());
  for (const auto &strategy : strategies) {
    const size_t first = plan.launches.size();
    if (failed(strategy->build(b, plan.schedule, plan)) ||
        failed(strategy->buildTma(tmaBuilder, first, plan.schedule, plan)))
      return failure();
  }
  plan.text = device.print();
  const bool isDependentLaunch =
      llvm::any_of(plan.functions, [](const DeviceFunction &function) { return function.isDependentLaunch; });
  for (const auto &[chip, capability] : plainChips) {
    if (chip.hasDependentLaunch && !isDependentLaunch)
      continue;
    FailureOr<Image> image = compileDevice(kernel, device, chip, capability, false);
    if (failed(image))
      return failure();
    plan.images.push_back(std::move(*image));
  }
  if (plan.tmaFunctions.empty())
    return plan;
  plan.text += tma.print();
  FailureOr<Image> image = compileDevice(kernel, tma, {"sm_90a", "+ptx80", true}, 90, true);
  if (failed(image))
    return failure();
  plan.tmaImage = std::move(*image);
  return plan;
}

namespace {

class CudaCompiler : public KernelCompiler {
public:
  CudaCompiler(std::string hostTriple, std::string hostCpu)
      : hostTriple(std::move(hostTriple)), hostCpu(std::move(hostCpu)) {}

  const KernelAbi &abi() const override { return cudaAbi(); }

  Schedulable describe(func::FuncOp kernel) const override {
    const DecomposedKernel decomposed(kernel);
    Placement placement(decomposed);
    const StageStrategies strategies = chooseStrategies(decomposed.get(), placement);
    return cuda::describe(decomposed.get(), placement, strategies);
  }

  std::vector<TuningRule> limitsOf(func::FuncOp kernel, const Machine &machine) const override {
    return machine.isGpu() ? cuda::limitsOf(kernel, machine.capability) : std::vector<TuningRule>();
  }

  std::vector<std::string> idleParameters(func::FuncOp kernel, const Machine &machine) const override {
    return machine.isGpu() ? cuda::idleParameters(kernel, machine.capability) : std::vector<std::string>();
  }

  double multiplyRate(func::FuncOp kernel, const Machine &machine) const override {
    return machine.isGpu() ? cuda::multiplyRate(kernel, machine.capability) : 1;
  }

  std::string printCost(func::FuncOp kernel, const ScheduleConfig &config) const override {
    const Gpu gpu = gpuOf(80);
    SmallVector<int64_t> extents;
    for (Bounds bounds : keyOf(kernel).bounds)
      extents.push_back(bounds.max);
    FailureOr<std::vector<LaunchCost>> costs = costOf(kernel, &config, extents, gpu);
    return succeeded(costs) ? toString(*costs, gpu) : "";
  }

  std::vector<ShapeVariant> shapeVariants(func::FuncOp kernel) const override {
    const DecomposedKernel decomposed(kernel);
    const Placement placement(decomposed);
    std::vector<ShapeVariant> variants = attentionVariants(decomposed.get(), placement);
    return variants.empty() ? skinnyGemmVariants(decomposed.get(), placement) : variants;
  }

  FailureOr<KernelObject> compile(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config) const override {
    FailureOr<LaunchPlan> plan = planKernel(kernel, config);
    if (failed(plan))
      return failure();
    llvm::Expected<std::string> object = compileHostLauncher(*plan, kernel, symbol, hostTriple, hostCpu);
    if (!object)
      return kernel.emitError() << "the kernel has no host code: " << llvm::toString(object.takeError());
    return KernelObject{std::move(*object), plan->scratchBytes, 0, plan->strategy, plan->schedule};
  }

  /// Returns the functions as MLIR for Stmt and Loops, and the PTX of each image for Assembly.
  FailureOr<std::string> print(func::FuncOp kernel, StringRef, KernelText form,
                               const ScheduleConfig *config) const override {
    FailureOr<LaunchPlan> plan = planKernel(kernel, config);
    if (failed(plan))
      return failure();
    if (form != KernelText::Assembly)
      return plan->text;
    std::string text;
    for (const Image &image : plan->images)
      text += image.text;
    if (plan->tmaImage)
      text += plan->tmaImage->text;
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
