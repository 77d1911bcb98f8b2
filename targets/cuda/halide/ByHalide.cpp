// SPDX-License-Identifier: Apache-2.0
//
// Halide reports unsupported pipelines as exceptions; they become diagnostics at the kernel function here.
#include "targets/cuda/halide/ByHalide.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "targets/cuda/halide/DeviceCode.h"
#include "targets/cuda/halide/Schedule.h"
#include "targets/halide/Compile.h"
#include "targets/halide/strategies/Placement.h"

namespace kiln::cuda {

using namespace mlir;

/// Indices are i32, including those beyond the end of the last block.
static bool hasSmallTensors(func::FuncOp kernel) {
  constexpr int64_t most = (int64_t(1) << 31) - (int64_t(1) << 20);
  auto isSmall = [&](Type type) { return !isa<RankedTensorType>(type) || mostElements(type, kernel) <= most; };
  return llvm::all_of(kernel.getArgumentTypes(), isSmall) && llvm::all_of(kernel.getResultTypes(), isSmall);
}

/// Halide 14 makes LLVM contract all multiplications and additions for NVIDIA GPUs, also strict ones, and assume that
/// there are no NaN, whatever the options are; its code for f16 and bf16 crashed; floor flushes to zero. Returns
/// whether the op depends on none of this.
static bool isExact(Operation &op) {
  auto isKnown = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isIndex() || element.isF32() || element.isInteger(1) || element.isInteger(8) ||
           element.isInteger(32);
  };
  if (op.hasAttr("kiln.strict") || !llvm::all_of(op.getResultTypes(), isKnown))
    return false;
  // Halide's constants are finite.
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<FloatAttr>(constant.getValue());
    return !number || number.getValue().isFinite();
  }
  // An index out of range may select any element of a table, but arithmetic on it must give the same number as on
  // other targets.
  if (auto cast = dyn_cast<arith::IndexCastOp>(op); cast && cast.getType().isIndex())
    return llvm::all_of(cast->getUsers(), llvm::IsaPred<tensor::ExtractOp>);
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, math::AbsFOp, math::FmaOp,
             math::SqrtOp, arith::SIToFPOp, arith::UIToFPOp, arith::BitcastOp>(op) ||
         isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivSIOp, arith::RemSIOp, arith::DivUIOp,
             arith::RemUIOp, arith::MaxSIOp, arith::MinSIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::CmpIOp,
             arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::SelectOp,
             math::AbsIOp>(op) ||
         isa<linalg::IndexOp, linalg::YieldOp, linalg::GenericOp, linalg::FillOp, tensor::EmptyOp,
             affine::AffineApplyOp, func::ReturnOp>(op);
}

/// Whether a look-up always has an element to read.
static bool hasElements(tensor::ExtractOp op, func::FuncOp kernel) {
  return llvm::all_of(mlir::kiln::getExtents(op.getTensor().getType()),
                      [&](AffineExpr extent) { return leastValue(extent, kernel) > 0; });
}

static bool isExact(func::FuncOp kernel) {
  const bool isAll = !kernel
                          .walk([&](Operation *op) {
                            auto extract = dyn_cast<tensor::ExtractOp>(op);
                            const bool isFine = op == kernel || (extract ? hasElements(extract, kernel) : isExact(*op));
                            return isFine ? WalkResult::advance() : WalkResult::interrupt();
                          })
                          .wasInterrupted();
  return isAll && llvm::all_of(kernel.getArgumentTypes(), [](Type type) {
           Type element = getElementTypeOrSelf(type);
           return element.isIndex() || element.isF32() || element.isInteger();
         });
}

bool canBeByHalide(func::FuncOp kernel, const Placement &placement) {
  if (placement.scratchBytes || !hasSmallTensors(kernel) || !isExact(kernel))
    return false;
  return llvm::all_of(
      kernel.getOps<linalg::GenericOp>(),
      [&](linalg::GenericOp op) { // Halide does not infer which sums an element needs through its row index.
        return !halide::isReadBack(op) && op.getNumReductionLoops() == 0;
      });
}

void addHalideParameters(func::FuncOp kernel, SearchSpace &space) {
  const size_t first = space.size();
  space.push_back({"halide", {0, 1}, 0});
  addGpuParameters(kernel, space);
  ScheduleConfig defaults;
  for (const TuningParameter &parameter : llvm::drop_begin(space, first))
    defaults[parameter.key] = parameter.defaultValue;
  space.rules.push_back({"no parameter of Halide's without halide", [defaults](const ScheduleConfig &config) {
                           return config.at("halide") || llvm::all_of(defaults, [&](auto &known) {
                                    return known.first == "halide" || config.at(known.first) == known.second;
                                  });
                         }});
}

bool isByHalide(const ScheduleConfig &config) {
  auto byHalide = config.find("halide");
  return byHalide != config.end() && byHalide->second != 0;
}

/// `ld.global.nc` uses the read-only cache, which requires that nothing writes to the memory while the kernel runs.
static void readCoherently(std::string &text) {
  const std::string from = "ld.global.nc.", to = "ld.global.";
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

LogicalResult planByHalide(func::FuncOp kernel, LaunchPlan &plan) {
  // The options are global to the process, in which kernels for its CPU may follow.
  halide::setCodeOptions(halide::x86CodeOptions);
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
