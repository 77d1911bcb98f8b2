// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_KEEPORDER
#include "compiler/transforms/Passes.h.inc"

namespace {

struct KeepOrder : impl::KeepOrderBase<KeepOrder> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!::kiln::isKernel(kernel))
      return;
    // Kernels that only move or count elements have only one possible result.
    WalkResult result = kernel.walk([](Operation *op) {
      const bool computes = isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
                            llvm::any_of(op->getOperandTypes(), llvm::IsaPred<FloatType>);
      return computes ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      kernel->setAttr(batchInvariantAttrName, UnitAttr::get(&getContext()));
  }
};

} // namespace
} // namespace mlir::kiln
