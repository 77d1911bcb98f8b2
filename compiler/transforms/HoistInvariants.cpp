// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_HOISTINVARIANTS
#include "compiler/transforms/Passes.h.inc"

namespace {

bool isComputedBefore(Value value, Operation *loop) { return !loop->isAncestor(value.getParentBlock()->getParentOp()); }

/// Whether the op is loop-invariant. Parameters and states are not: each iteration has those of its layer.
bool isInvariant(Operation &op, Operation *loop) {
  if (!isa<CallOp, ReshapeOp, SliceOp>(op) && !isa<arith::ArithDialect, affine::AffineDialect>(op.getDialect()))
    return false;
  return llvm::all_of(op.getOperands(), [&](Value operand) { return isComputedBefore(operand, loop); });
}

/// Whether only kernels read the values, or the values are dimensions. Other users need a separate value in each
/// iteration: one that is carried, stacked or stored.
bool isReadByKernels(Operation &op) {
  return llvm::all_of(op.getUses(), [](OpOperand &use) {
    return use.get().getType().isIndex() || isa<CallOp>(use.getOwner()) ||
           (isa<ReshapeOp, SliceOp>(use.getOwner()) && isReadByKernels(*use.getOwner()));
  });
}

void hoist(Operation *loop) {
  for (Operation &op : llvm::make_early_inc_range(loop->getRegion(0).front().without_terminator()))
    if (isInvariant(op, loop) && isReadByKernels(op))
      op.moveBefore(loop);
}

struct HoistInvariants : impl::HoistInvariantsBase<HoistInvariants> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) { // inner loops first
      if (isa<RepeatOp, ScanOp>(op))
        hoist(op);
    });
  }
};

} // namespace
} // namespace mlir::kiln
