// SPDX-License-Identifier: Apache-2.0
//
// KernelBuilder does the work; here the arguments that may share memory with a result are found: those that are read
// only at the element that is written, or along the row that a last axis is, and by no other result once one is stored.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/transforms/Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_LOWERKERNELS
#include "compiler/transforms/Passes.h.inc"

namespace {

bool isReadInPlace(OpOperand &use) {
  auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!generic || !generic.isDpsInput(&use) || !generic.getMatchingIndexingMap(&use).isIdentity())
    return false;
  auto iterators = generic.getIteratorTypesArray();
  return llvm::none_of(ArrayRef(iterators).drop_back(iterators.empty() ? 0 : 1),
                       [](utils::IteratorType type) { return type == utils::IteratorType::reduction; });
}

/// Whether `value` is computed from the argument, other than through `known`.
bool follows(Value value, BlockArgument argument, Value known) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) { return op != known.getDefiningOp(); };
  (void)getBackwardSlice(value, &slice, options);
  return llvm::any_of(argument.getUsers(), [&](Operation *user) { return slice.contains(user); });
}

/// Whether a result that has taken the argument's memory leaves nothing to be read from there: the results of an
/// element are stored one after the other, and a result that the others need is kept until they are stored, too.
bool isLeftByOthers(BlockArgument argument, ValueRange results) {
  for (auto [i, result] : llvm::enumerate(results))
    for (auto [j, other] : llvm::enumerate(results)) {
      const bool isBehind = j > i || (j < i && other.getType() != result.getType());
      if (isBehind && result.getType() == argument.getType() && follows(other, argument, result))
        return false;
    }
  return true;
}

SmallVector<int64_t> findInPlaceArguments(func::FuncOp kernel) {
  ValueRange results = kernel.getBody().front().getTerminator()->getOperands();
  SmallVector<int64_t> result;
  int64_t number = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    if (argument.getType().isIndex())
      continue;
    if (llvm::is_contained(kernel.getResultTypes(), argument.getType()) &&
        llvm::all_of(argument.getUses(), isReadInPlace) && isLeftByOthers(argument, results))
      result.push_back(number);
    ++number;
  }
  return result;
}

struct LowerKernels : impl::LowerKernelsBase<LowerKernels> {
  using LowerKernelsBase::LowerKernelsBase;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(kernelAttrName) || kernel.isExternal())
      return;
    if (failed(KernelBuilder(kernel).run()))
      return signalPassFailure();
    kernel->setAttr(inplaceAttrName, DenseI64ArrayAttr::get(&getContext(), findInPlaceArguments(kernel)));
  }
};

} // namespace
} // namespace mlir::kiln
