// SPDX-License-Identifier: Apache-2.0
//
// KernelBuilder does the lowering; this pass finds the arguments that may share memory with a result: those of which
// each element is used only to compute the same element of the result, or the same row along the last axis, and by no
// other result once one is stored.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/kernel/ScanBlocks.h"
#include "compiler/transforms/Passes.h"
#include "compiler/transforms/ScanKernel.h"
#include "mlir/Analysis/SliceAnalysis.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_LOWERKERNELS
#include "compiler/transforms/Passes.h.inc"

namespace {

/// Whether the map's results are the op's first loops, in order.
bool takesFirstLoops(AffineMap map) {
  return llvm::all_of(llvm::enumerate(map.getResults()), [&](auto indexed) {
    return indexed.value() == getAffineDimExpr(indexed.index(), map.getContext());
  });
}

/// Whether the op computes each row (the last of `rank` dimensions) from the same row of its operands.
bool staysInRows(linalg::GenericOp op, int64_t rank) {
  auto iterators = op.getIteratorTypesArray();
  return int64_t(iterators.size()) <= rank &&
         llvm::none_of(ArrayRef(iterators).take_front(std::max<int64_t>(rank - 1, 0)),
                       [](utils::IteratorType type) { return type == utils::IteratorType::reduction; }) &&
         llvm::all_of(op.getDpsInitsMutable(),
                      [&](OpOperand &init) { return takesFirstLoops(op.getMatchingIndexingMap(&init)); });
}

/// Whether everything that is computed from the argument, op by op up to the results, uses the same element or the
/// whole row of the same element.
bool isReadInPlace(BlockArgument argument) {
  const int64_t rank = cast<RankedTensorType>(argument.getType()).getRank();
  llvm::DenseSet<Value> computed{argument};
  auto isComputed = [&](Value value) { return computed.contains(value); };
  for (Operation &op : argument.getOwner()->without_terminator()) {
    const bool isElsewhere = op.walk([&](Operation *inner) {
                                 return inner != &op && llvm::any_of(inner->getOperands(), isComputed)
                                            ? WalkResult::interrupt()
                                            : WalkResult::advance();
                               }).wasInterrupted();
    if (isElsewhere)
      return false;
    if (llvm::none_of(op.getOperands(), isComputed))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !staysInRows(generic, rank))
      return false;
    for (OpOperand &operand : op.getOpOperands())
      if (isComputed(operand.get()) &&
          (!generic.isDpsInput(&operand) || !takesFirstLoops(generic.getMatchingIndexingMap(&operand))))
        return false;
    computed.insert_range(op.getResults());
  }
  return true;
}

/// Whether `value` depends on the argument other than through `known`.
bool follows(Value value, BlockArgument argument, Value known) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) { return op != known.getDefiningOp(); };
  (void)getBackwardSlice(value, &slice, options);
  return llvm::any_of(argument.getUsers(), [&](Operation *user) { return slice.contains(user); });
}

/// Whether nothing reads the argument's memory after a result has overwritten it: the results of an element are stored
/// one after the other, and a result that the others need is kept until they are stored, too.
bool isLeftByOthers(BlockArgument argument, ValueRange results) {
  for (auto [i, result] : llvm::enumerate(results))
    for (auto [j, other] : llvm::enumerate(results)) {
      const bool isAfter = j > i || (j < i && other.getType() != result.getType());
      if (isAfter && result.getType() == argument.getType() && follows(other, argument, result))
        return false;
    }
  return true;
}

SmallVector<int64_t> findInPlaceArguments(func::FuncOp kernel) {
  const ::kiln::KernelFunction view(kernel);
  SmallVector<int64_t> result;
  for (auto [number, argument] : llvm::enumerate(view.tensors()))
    if (llvm::is_contained(kernel.getResultTypes(), argument.getType()) && isReadInPlace(argument) &&
        isLeftByOthers(argument, view.results()))
      result.push_back(static_cast<int64_t>(number));
  return result;
}

struct LowerKernels : impl::LowerKernelsBase<LowerKernels> {
  using LowerKernelsBase::LowerKernelsBase;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!::kiln::isKernel(kernel) || kernel.isExternal())
      return;
    LogicalResult lowered =
        ::kiln::scanOf(kernel) ? lowerScan(kernel, batchInvariant) : KernelBuilder(kernel, batchInvariant).run();
    if (failed(lowered))
      return signalPassFailure();
    kernel->setAttr(inplaceAttrName, DenseI64ArrayAttr::get(&getContext(), findInPlaceArguments(kernel)));
  }
};

} // namespace
} // namespace mlir::kiln
