// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/rows/StageReductions.h"

namespace kiln::cuda {

using namespace mlir;

/// `at`: the op's loops as loops of the stage's op.
static bool addReductions(linalg::GenericOp op, ArrayRef<unsigned> at, const Placement &placement,
                          SmallVectorImpl<StageReduction> &found) {
  if (op.getNumReductionLoops()) {
    found.push_back({op, SmallVector<unsigned>(at)});
    return true;
  }
  for (OpOperand &operand : op->getOpOperands()) {
    auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
    if (!producer || placement.find(operand.get()) || op.getMatchingBlockArgument(&operand).use_empty() ||
        !placement.reduces(producer))
      continue;
    AffineMap read = operandMap(operand);
    AffineMap written =
        producer.getMatchingIndexingMap(producer.getDpsInitOperand(cast<OpResult>(operand.get()).getResultNumber()));
    if (!read.isPermutation())
      return false;
    SmallVector<unsigned> loops(producer.getNumLoops());
    for (unsigned i = 0; i < written.getNumResults(); ++i)
      loops[written.getDimPosition(i)] = at[read.getDimPosition(i)];
    if (!addReductions(producer, loops, placement, found))
      return false;
  }
  return true;
}

std::optional<SmallVector<StageReduction>> findReductions(const StageContext &context) {
  SmallVector<StageReduction> found;
  linalg::GenericOp op = context.stage.op;
  if (!op || !addReductions(op, llvm::to_vector(llvm::seq<unsigned>(0, op.getNumLoops())), context.placement, found))
    return std::nullopt;
  return found;
}

} // namespace kiln::cuda
