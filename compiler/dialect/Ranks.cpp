// SPDX-License-Identifier: Apache-2.0
//
// Modules whose entries several ranks call together: the number of ranks, the sharding of weights, and collectives.
#include "compiler/dialect/Check.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

int64_t getNumRanks(Operation *op, Group group) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  const StringRef name = group == Group::Ranks      ? ranksAttrName
                         : group == Group::Replicas ? replicasAttrName
                                                    : stagesAttrName;
  auto number = module ? module->getAttrOfType<IntegerAttr>(name) : nullptr;
  return number ? number.getInt() : 1;
}

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t dim, ArrayRef<int64_t> sections,
                                int64_t group) {
  if (dim < 0)
    return emitError() << "shard: negative dimension; expected at least 0, got " << dim;
  if (sections.empty() || llvm::any_of(sections, [](int64_t extent) { return extent < 1; }))
    return emitError() << "shard: empty section, or no sections; expected sections of at least 1";
  if (group < 1)
    return emitError() << "shard: empty group; expected at least 1 rank, got " << group;
  return success();
}

/// Checks that `whole` has a `part` of each process of the group along a new first axis.
static LogicalResult checkParts(Operation *op, Value part, Value whole, Group group) {
  Check check(op);
  auto one = cast<RankedTensorType>(part.getType()), all = cast<RankedTensorType>(whole.getType());
  const std::string name = op->getName().stripDialect().str();
  if (failed(check.extents({one, all})) || failed(check.keepsElement(name, one, all)))
    return failure();
  const int64_t ranks = getNumRanks(op, group);
  const bool isStacked = all.getRank() == one.getRank() + 1 &&
                         ArrayRef(getExtents(all)).drop_front() == ArrayRef(getExtents(one)) &&
                         (ranks == 1 ? !all.isDynamicDim(0) : all.getDimSize(0) == ranks);
  if (!isStacked)
    return check.report(name + ": wrong shape; expected one part of each rank", check.text({one, all}));
  return success();
}

LogicalResult AllGatherOp::verify() { return checkParts(*this, getX(), getResult(), getOver()); }

LogicalResult ReduceScatterOp::verify() { return checkParts(*this, getResult(), getX(), getOver()); }

LogicalResult BeginReduceOp::verify() {
  auto type = cast<RankedTensorType>(getX().getType());
  const int64_t ranks = getNumRanks(*this, getOver());
  if (getScattered() && (type.getRank() == 0 || type.isDynamicDim(0) || (ranks > 1 && type.getDimSize(0) != ranks)))
    return Check(*this).report("scattered begin_reduce: wrong number of parts; expected one for each rank",
                               Check(*this).text({type}));
  for (Operation *user : getResult().getUsers())
    if (!isa<FinishOp, YieldOp, ReshapeOp>(user))
      return Check(*this).report("begin_reduce: read too early; expected finish before",
                                 user->getName().stripDialect());
  return success();
}

OpFoldResult ToRanksOp::fold(FoldAdaptor) { return getX(); }

} // namespace mlir::kiln
