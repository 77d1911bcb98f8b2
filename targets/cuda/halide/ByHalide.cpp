// SPDX-License-Identifier: Apache-2.0
//
// Halide reports what it cannot do as exceptions; they end here as diagnostics at the kernel function.
#include "targets/cuda/halide/ByHalide.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "targets/cuda/halide/DeviceCode.h"
#include "targets/cuda/halide/Schedule.h"
#include "targets/halide/Compile.h"
#include "targets/halide/Placement.h"

namespace kiln::cuda {

using namespace mlir;

/// Indices are i32, those behind the end of the last block among them.
static bool hasSmallTensors(func::FuncOp kernel) {
  constexpr int64_t most = (int64_t(1) << 31) - (int64_t(1) << 20);
  auto isSmall = [&](Type type) { return !isa<RankedTensorType>(type) || mostElements(type, kernel) <= most; };
  return llvm::all_of(kernel.getArgumentTypes(), isSmall) && llvm::all_of(kernel.getResultTypes(), isSmall);
}

/// Halide's constants are finite.
static bool hasInfinity(func::FuncOp kernel) {
  return kernel
      .walk([](arith::ConstantOp op) {
        auto number = dyn_cast<FloatAttr>(op.getValue());
        return number && number.getValue().isInfinity() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool canBeByHalide(func::FuncOp kernel, const Placement &placement) {
  if (placement.scratchBytes || !hasSmallTensors(kernel) || hasInfinity(kernel))
    return false;
  return llvm::all_of(kernel.getOps<linalg::GenericOp>(), [&](linalg::GenericOp op) {
    return !halide::isReadBack(op) && (!op.getNumReductionLoops() || placement.steps.size() == 1);
  });
}

void addHalideParameters(func::FuncOp kernel, SearchSpace &space) {
  const size_t first = space.size();
  space.push_back({"halide", {0, 1}, 0});
  addGpuParameters(kernel, space);
  SchedulePoint preset;
  for (const TuningParameter &parameter : llvm::drop_begin(space, first))
    preset[parameter.key] = parameter.preset;
  space.rules.push_back({"no parameter of Halide's without halide", [preset](const SchedulePoint &point) {
                           return point.at("halide") || llvm::all_of(preset, [&](auto &known) {
                                    return known.first == "halide" || point.at(known.first) == known.second;
                                  });
                         }});
}

/// The read-only cache of `ld.global.nc` is for memory that nothing writes while the kernel runs.
static void readCoherently(std::string &text) {
  const std::string from = "ld.global.nc.", to = "ld.global.";
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

LogicalResult planByHalide(func::FuncOp kernel, DevicePlan &plan) {
  // They hold for the process, in which kernels for its CPU may follow.
  halide::setCodeOptions(halide::codeOptions);
  try {
    halide::Translator translator(kernel, "kernel");
    if (failed(translator.run()))
      return failure();
    scheduleForGpu(translator, plan.schedule);
    FailureOr<DeviceCode> code = compileForDevice(translator, "cuda-cuda_capability_80");
    if (failed(code))
      return failure();
    if (kernel->hasAttr(mlir::kiln::inplaceAttrName))
      readCoherently(code->text);
    plan.text = std::move(code->statement);
    plan.images.push_back({std::move(code->text), 80, false});
    plan.functions = std::move(code->functions);
    plan.launches = std::move(code->launches);
    return success();
  } catch (const Halide::Error &error) {
    return kernel.emitError() << "halide cannot compile the kernel for a GPU: " << StringRef(error.what()).trim();
  }
}

} // namespace kiln::cuda
