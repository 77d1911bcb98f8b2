// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/WeightUses.h"

namespace mlir::kiln {

std::optional<int64_t> getOutputDim(OpOperand &use) {
  if (auto linear = dyn_cast<LinearOp>(use.getOwner()); linear && &use == &linear.getWeightMutable())
    return linear.getOutputDim();
  if (auto grouped = dyn_cast<GroupedLinearOp>(use.getOwner());
      grouped && &use == &grouped.getWeightMutable() && grouped.getWeightOrder() == WeightOrder::OutIn)
    return 0;
  if (auto conv = dyn_cast<Conv2dOp>(use.getOwner()); conv && &use == &conv.getWeightMutable() && conv.getGroups() == 1)
    return 0;
  auto matmul = dyn_cast<MatmulOp>(use.getOwner());
  if (matmul && use.getOperandNumber() == 1 && cast<RankedTensorType>(use.get().getType()).getRank() == 2)
    return matmul.getTransposeB() ? 0 : 1;
  return std::nullopt;
}

bool takesLayout(OpOperand &use) {
  return getOutputDim(use) || (isa<EmbeddingOp>(use.getOwner()) && use.getOperandNumber() == 1);
}

} // namespace mlir::kiln
