// SPDX-License-Identifier: Apache-2.0
//
// Modules whose entries several ranks call together: their number, their parts of weights, and what they do together.
#include "compiler/dialect/Check.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

int64_t getNumRanks(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto ranks = module ? module->getAttrOfType<IntegerAttr>(ranksAttrName) : IntegerAttr();
  return ranks ? ranks.getInt() : 1;
}

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t dim, ArrayRef<int64_t> sections) {
  if (dim < 0)
    return emitError() << "shard requires a dimension of at least 0, got " << dim;
  if (sections.empty() || llvm::any_of(sections, [](int64_t extent) { return extent < 1; }))
    return emitError() << "shard requires sections of at least 1";
  return success();
}

LogicalResult AllGatherOp::verify() {
  Check check(*this);
  auto part = cast<RankedTensorType>(getX().getType()), whole = cast<RankedTensorType>(getType());
  if (failed(check.extents({part, whole})) ||
      failed(check.sameElement("all_gather requires the operand's element type", {part, whole})))
    return failure();
  const int64_t ranks = getNumRanks(*this);
  const bool isStacked = whole.getRank() == part.getRank() + 1 &&
                         ArrayRef(getExtents(whole)).drop_front() == ArrayRef(getExtents(part)) &&
                         (ranks == 1 ? !whole.isDynamicDim(0) : whole.getDimSize(0) == ranks);
  if (!isStacked)
    return check.fail("all_gather requires one part of each rank", check.text({part, whole}));
  return success();
}

OpFoldResult ToRanksOp::fold(FoldAdaptor) { return getX(); }

} // namespace mlir::kiln
