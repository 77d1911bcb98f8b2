// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/RowReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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

bool isElementwise(linalg::GenericOp op) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInits() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity();
}

} // namespace kiln
