// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/KernelAttention.h"
#include "compiler/kernel/KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_ALLOWTF32
#include "compiler/transforms/Passes.h.inc"

namespace {

/// Whether the op sums products of f32, which are not strict.
bool sumsProducts(Operation *op) {
  if (op->hasAttr(strictAttrName))
    return false;
  if (isa<KernelAttentionOp>(op))
    return true;
  auto product = dyn_cast<arith::MulFOp>(op);
  auto generic = dyn_cast<linalg::GenericOp>(op->getParentOp());
  return product && generic && generic.getNumReductionLoops() > 0 && product.getType().isF32() &&
         product.getLhs() != product.getRhs() && !generic->hasAttr(strictAttrName) &&
         llvm::any_of(op->getUsers(), [](Operation *user) { return isa<arith::AddFOp>(user); });
}

struct AllowTf32 : impl::AllowTf32Base<AllowTf32> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!::kiln::isKernel(kernel))
      return;
    kernel.walk([&](Operation *op) {
      if (sumsProducts(op))
        kernel->setAttr(tf32AttrName, UnitAttr::get(&getContext()));
    });
  }
};

} // namespace
} // namespace mlir::kiln
