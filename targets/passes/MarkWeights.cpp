// SPDX-License-Identifier: Apache-2.0
#include "targets/passes/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_MARKWEIGHTS
#include "targets/passes/Passes.h.inc"

namespace {

bool isWeight(Value value) {
  auto parameter = value.getDefiningOp<ParameterOp>();
  return parameter && !parameter.getVariable();
}

struct MarkWeights : impl::MarkWeightsBase<MarkWeights> {
  void runOnOperation() override {
    llvm::DenseMap<func::FuncOp, llvm::BitVector>
        others; // for each kernel: the arguments that are not weights in some call
    getOperation().walk([&](CallOp call) {
      auto kernel = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
      llvm::BitVector &ofKernel = others[kernel];
      ofKernel.resize(kernel.getNumArguments());
      for (auto [number, argument] : llvm::enumerate(call.getArguments()))
        if (!isWeight(argument))
          ofKernel.set(unsigned(call.getExtents().size() + number));
    });
    for (auto &[kernel, ofKernel] : others)
      for (BlockArgument argument : kernel.getArguments())
        if (!argument.getType().isIndex() && !ofKernel.test(argument.getArgNumber()))
          kernel.setArgAttr(argument.getArgNumber(), weightAttrName, UnitAttr::get(&getContext()));
  }
};

} // namespace

void addMarkWeights(OpPassManager &passes) { passes.addPass(createMarkWeights()); }

} // namespace mlir::kiln
