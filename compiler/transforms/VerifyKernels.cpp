// SPDX-License-Identifier: Apache-2.0
//
// Checks the invariants between stages (docs/ir.md), so that a pass that breaks one fails here and not in a target.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KernelAttention.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/transforms/RowsInPlace.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_VERIFYKERNELS
#include "compiler/transforms/Passes.h.inc"

namespace {

bool isIndexArithmetic(Operation *op) {
  return isa<arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::MulIOp, affine::AffineApplyOp>(op) &&
         op->getResult(0).getType().isIndex();
}

LogicalResult verifyExtents(Operation *op, TypeRange types) {
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto tiled = tensor ? dyn_cast_if_present<TiledAttr>(tensor.getEncoding()) : TiledAttr();
    if (tensor && !tiled && !hasExtents(tensor))
      return op->emitError() << "operation: dynamic dimension without its extent; expected every one stated, got "
                             << type;
    if (tiled && !tiled.isGenerated())
      return op->emitError() << "weight: interleave has no generated code; expected none, got " << tiled;
  }
  return success();
}

LogicalResult verifyEntryOp(Operation *op) {
  if (failed(verifyExtents(op, op->getResultTypes())))
    return failure();
  if (op->hasTrait<HostOp>() || isa<ConstantOp, func::ReturnOp>(op) || isIndexArithmetic(op) || isRowsInPlace(op))
    return success();
  return op->emitError() << "operation: outside of a kernel; expected only calls, parameters, constants, states, "
                            "reshapes, rows and loops in an entry";
}

/// MLIR itself does not check that a map's expressions only use its own dimensions.
LogicalResult verifyMaps(linalg::LinalgOp op) {
  for (AffineMap map : op.getIndexingMapsArray())
    for (AffineExpr result : map.getResults()) {
      WalkResult walked = result.walk([&](AffineExpr part) {
        auto dim = dyn_cast<AffineDimExpr>(part);
        bool isKnown = !isa<AffineSymbolExpr>(part) && (!dim || dim.getPosition() < op.getNumLoops());
        return isKnown ? WalkResult::advance() : WalkResult::interrupt();
      });
      if (walked.wasInterrupted())
        return op->emitError() << "operation: wrong indexing map; expected one over its loops, got "
                               << AffineMapAttr::get(map);
    }
  return success();
}

/// Whether the op computes numbers in the region of an op on tensors.
bool isScalar(Operation *op) {
  return op->getParentOfType<linalg::LinalgOp>() || op->getParentOfType<KernelAttentionOp>();
}

LogicalResult verifyLoweredOp(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op); linalgOp && failed(verifyMaps(linalgOp)))
    return failure();
  if (isScalar(op)) {
    if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
        isa<linalg::IndexOp, linalg::YieldOp, KernelIndexOp, KernelYieldOp, tensor::ExtractOp>(op))
      return success();
  } else if (isa<KernelAttentionOp, linalg::GenericOp, linalg::FillOp, tensor::EmptyOp, func::ReturnOp,
                 arith::ConstantOp, ScanOp, YieldOp>(op) ||
             isIndexArithmetic(op)) {
    return success();
  }
  return op->emitError() << "operation: not allowed in a lowered kernel; expected a decomposition";
}

LogicalResult verifyKernel(func::FuncOp kernel, bool isLowered) {
  size_t indices = llvm::count_if(kernel.getArgumentTypes(), [](Type type) { return type.isIndex(); });
  auto bounds = kernel->getAttrOfType<DenseI64ArrayAttr>(boundsAttrName);
  if (!bounds || bounds.size() != 2 * static_cast<int64_t>(indices))
    return kernel.emitError() << "kernel: wrong number of bounds; expected two for each of " << indices << " symbols";
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (type.isIndex() != (i < indices))
      return kernel.emitError() << "kernel: wrong order of arguments; expected index arguments first";
  if (failed(verifyExtents(kernel, kernel.getArgumentTypes())) || !isLowered)
    return success(!isLowered);
  WalkResult result = kernel.getBody().walk([](Operation *op) {
    if (failed(verifyLoweredOp(op)) || (!isScalar(op) && failed(verifyExtents(op, op->getResultTypes()))))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (Value value : kernel.getBody().front().getTerminator()->getOperands())
    if (!isa_and_nonnull<linalg::LinalgOp, KernelAttentionOp, ScanOp>(value.getDefiningOp()))
      return kernel.emitError() << "kernel: wrong result; expected one that a linalg op, attention or scan produces";
  return success();
}

struct VerifyKernels : impl::VerifyKernelsBase<VerifyKernels> {
  using VerifyKernelsBase::VerifyKernelsBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (::kiln::isKernel(function)) {
        if (failed(verifyKernel(function, lowered)))
          return signalPassFailure();
        continue;
      }
      if (!function->hasAttr(entryAttrName))
        continue;
      WalkResult result = function.getBody().walk(
          [](Operation *op) { return failed(verifyEntryOp(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::kiln
