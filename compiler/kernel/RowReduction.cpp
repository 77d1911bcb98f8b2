// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/RowReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace kiln {

using namespace mlir;

Operation *accumulatingOp(Value next, BlockArgument accumulator) {
  Operation *op = next.getDefiningOp();
  const bool accumulates = op && accumulator.hasOneUse() && llvm::is_contained(op->getOperands(), accumulator);
  return accumulates ? op : nullptr;
}

Operation *reorderableCombiner(linalg::GenericOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0)
    return nullptr;
  Operation *combiner = accumulatingOp(op.getBlock()->getTerminator()->getOperand(0), op.getRegionOutputArgs()[0]);
  const bool isReorderable =
      isa_and_nonnull<arith::AddFOp, arith::AddIOp, arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
                      arith::MinNumFOp, arith::MaxSIOp, arith::MinSIOp>(combiner);
  return isReorderable ? combiner : nullptr;
}

std::optional<double> startOf(linalg::GenericOp reduction) {
  auto fill = reduction.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  APFloat start(0.0f);
  if (!fill || !matchPattern(fill.getInputs().front(), m_ConstantFloat(&start)))
    return std::nullopt;
  return start.convertToDouble();
}

std::optional<unsigned> inputAt(linalg::GenericOp op, Value value, AffineMap map) {
  std::optional<unsigned> found;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (input->get() != value)
      continue;
    if (found || op.getMatchingIndexingMap(input) != map)
      return std::nullopt;
    found = input->getOperandNumber();
  }
  return found;
}

Operation *rowCombiner(linalg::GenericOp op, Value value) {
  if (op->getNumResults() != 1 || op.getNumReductionLoops() != 1 ||
      op.getIteratorTypesArray().back() != utils::IteratorType::reduction)
    return nullptr;
  const unsigned loops = op.getNumLoops();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(loops, op->getContext());
  std::optional<unsigned> input = inputAt(op, value, identity);
  Operation *combiner = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  const bool joins = input && combiner &&
                     op.getMatchingIndexingMap(op.getDpsInitOperand(0)) == identity.dropResult(loops - 1) &&
                     llvm::is_contained(combiner->getOperands(), op.getBlock()->getArgument(*input));
  return joins ? combiner : nullptr;
}

bool isElementwise(linalg::GenericOp op) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInits() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity();
}

SmallVector<linalg::GenericOp> genericUsers(Value value) {
  llvm::SetVector<Operation *> users;
  for (Operation *user : value.getUsers()) {
    // A tensor.extract inside a region is a use by the generic around it.
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (!generic)
      generic = user->getParentOfType<linalg::GenericOp>();
    if (generic)
      users.insert(generic);
  }
  SmallVector<linalg::GenericOp> result;
  for (Operation *user : users)
    result.push_back(cast<linalg::GenericOp>(user));
  llvm::sort(result, [](linalg::GenericOp a, linalg::GenericOp b) { return a->isBeforeInBlock(b); });
  return result;
}

} // namespace kiln
