// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of what ranks do together. Each rank has the whole gradient of what all of them have alike, and a part's
// gradient where its part is.
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
