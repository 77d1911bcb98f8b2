// SPDX-License-Identifier: Apache-2.0
//
// Two kernels are equal if their text is, without name, bounds and scopes. Calls are visited in execution order, so the
// result depends only on the model.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/transforms/KernelNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_SHAREKERNELS
#include "compiler/transforms/Passes.h.inc"

namespace {

std::string getStructure(func::FuncOp kernel) {
  OwningOpRef<func::FuncOp> copy(kernel.clone());
  copy->setName("kernel");
  (*copy)->removeAttr(boundsAttrName);
  (*copy)->removeAttr(scopesAttrName);
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

void uniteBounds(func::FuncOp kernel, func::FuncOp other) {
  SmallVector<Interval> bounds = ::kiln::KernelFunction(kernel).bounds();
  for (auto [mine, theirs] : llvm::zip_equal(bounds, ::kiln::KernelFunction(other).bounds()))
    mine = {std::min(mine.min, theirs.min), std::max(mine.max, theirs.max)};
  ::kiln::KernelFunction(kernel).setBounds(bounds);
}

struct ShareKernels : impl::ShareKernelsBase<ShareKernels> {
  using ShareKernelsBase::ShareKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<func::FuncOp> byStructure;
    llvm::MapVector<func::FuncOp, SmallVector<CallOp>> calls; // of the kernels that are kept
    DenseMap<func::FuncOp, func::FuncOp> replacements;
    module.walk<WalkOrder::PreOrder>([&](CallOp call) {
      auto kernel = module.lookupSymbol<func::FuncOp>(call.getCallee());
      func::FuncOp &kept = replacements[kernel];
      if (!kept) {
        kept = byStructure.try_emplace(getStructure(kernel), kernel).first->second;
        if (kept != kernel) {
          uniteBounds(kept, kernel);
          uniteScopes(kept, kernel);
        }
      }
      calls[kept].push_back(call);
    });

    for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (::kiln::isKernel(kernel) && !calls.contains(kernel))
        kernel.erase();
    // Rename to temporary names first, as final names may be taken by kernels that are not renamed yet.
    int64_t count = 0;
    SmallVector<std::string> stems;
    for (auto &[kernel, users] : calls) {
      stems.push_back(stemOf(kernel.getName()).str());
      kernel.setName("kiln_renamed_" + std::to_string(count++));
    }
    count = 0;
    Operation *previous = nullptr;
    for (auto [stem, called] : llvm::zip_equal(stems, calls)) {
      auto &[kernel, users] = called;
      do
        kernel.setName(nameKernel(kernel, stem, count++));
      while (llvm::count_if(module.getOps<func::FuncOp>(),
                            [&](func::FuncOp other) { return other.getName() == kernel.getName(); }) > 1);
      for (CallOp call : users)
        call.setCallee(kernel.getName());
      if (previous)
        kernel->moveAfter(previous);
      else
        kernel->moveBefore(module.getBody(), module.getBody()->begin());
      previous = kernel;
    }
  }
};

} // namespace
} // namespace mlir::kiln
