// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of collectives. For a value that all ranks have, each rank has its whole gradient; for a part, the rank
// with the part has the part's gradient.
#include "compiler/dialect/gradients/GradientBuilder.h"

namespace mlir::kiln {

KILN_GRADIENT(AllReduceOp) { return {gradients[0]}; }
KILN_GRADIENT(ToRanksOp) { return {b.create<AllReduceOp>(gradients[0])}; }
KILN_GRADIENT(AllGatherOp) {
  if (getApart())
    return {b.createAs<ReduceScatterOp>(getX().getType(), gradients[0], getOver())};
  Value rank = b.createAs<RankOp>(RankedTensorType::get({}, IntegerType::get(getContext(), 32)), getOver());
  return {b.create<GatherOp>(gradients[0], rank, 0)};
}
KILN_GRADIENT(ReduceScatterOp) { return {b.createAs<AllGatherOp>(getX().getType(), gradients[0], getOver())}; }

} // namespace mlir::kiln
