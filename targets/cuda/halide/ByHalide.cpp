// SPDX-License-Identifier: Apache-2.0
//
// Halide reports what it cannot do as exceptions; they end here as diagnostics at the kernel function.
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
#include "targets/halide/Placement.h"

namespace kiln::cuda {

using namespace mlir;

/// Indices are i32, those behind the end of the last block among them.
static bool hasSmallTensors(func::FuncOp kernel) {
  constexpr int64_t most = (int64_t(1) << 31) - (int64_t(1) << 20);
  auto isSmall = [&](Type type) { return !isa<RankedTensorType>(type) || mostElements(type, kernel) <= most; };
  return llvm::all_of(kernel.getArgumentTypes(), isSmall) && llvm::all_of(kernel.getResultTypes(), isSmall);
}

/// Halide 14 has its LLVM fuse all products and sums for NVIDIA's GPUs, also strict ones, and take it that there is no
/// NaN, whatever it is asked for; its code for f16 and bf16 crashed; floor flushes to zero. What does not rest on any
/// of that:
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
  // A wild number may become any element of a table, but a sum with one not another number than in other targets.
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

/// A look-up reads an element that is there.
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
      [&](linalg::GenericOp op) { // Which sums an element needs Halide does not see through the number of its row.
        return !halide::isReadBack(op) && op.getNumReductionLoops() == 0;
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

bool isByHalide(const SchedulePoint &point) {
  auto byHalide = point.find("halide");
  return byHalide != point.end() && byHalide->second != 0;
}

/// The read-only cache of `ld.global.nc` is for memory that nothing writes while the kernel runs.
static void readCoherently(std::string &text) {
  const std::string from = "ld.global.nc.", to = "ld.global.";
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

LogicalResult planByHalide(func::FuncOp kernel, DevicePlan &plan) {
  // They hold for the process, in which kernels for its CPU may follow.
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
