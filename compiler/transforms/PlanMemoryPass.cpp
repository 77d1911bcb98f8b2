// SPDX-License-Identifier: Apache-2.0
//
// Inserts copies until no conflict is left. A copy at a loop's end reads the yielded value when the carried one is
// dead; where two carried values are swapped, the second round copies the copy.
#include "compiler/transforms/Passes.h"

#include "compiler/transforms/PlanMemory.h"
#include "compiler/transforms/ShareBuffers.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_PLANMEMORY
#include "compiler/transforms/Passes.h.inc"

namespace {

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(entryAttrName))
        entries.push_back(function);
    for (func::FuncOp entry : entries) {
      while (true) {
        if (failed(joinLoops(entry)))
          return signalPassFailure();
        BufferSharing sharing(entry);
        if (sharing.getConflicts().empty())
          break;
        for (OpOperand *operand : sharing.getConflicts())
          insertCopy(*operand);
      }
      FailureOr<MemoryPlan> plan = MemoryPlan::compute(entry);
      if (failed(plan))
        return signalPassFailure();
      Builder builder(&getContext());
      entry->setAttr(arenaBytesAttrName, builder.getI64IntegerAttr(plan->arenaBytes()));
      entry->setAttr(arenaLowerBoundAttrName, builder.getI64IntegerAttr(plan->lowerBound()));
    }
  }

private:
  /// Moves the follower directly after a loop that is ahead: ops between them go before both, except for views of what
  /// the first loop stacks, which go after.
  LogicalResult joinLoops(func::FuncOp entry) {
    for (ScanOp ahead : llvm::to_vector(entry.getOps<ScanOp>())) {
      if (ahead.getAhead() == 0)
        continue;
      ScanOp follower = getFollower(ahead);
      if (!follower || follower.getTripCount() != ahead.getTripCount())
        return ahead.emitError() << "scan that is ahead: no scan follows; expected one of as many iterations";
      for (Operation *op = ahead->getNextNode(); op != follower;) {
        Operation *next = op->getNextNode();
        const bool dependsOnIt = llvm::any_of(op->getOperands(), [&](Value operand) {
          Operation *maker = operand.getDefiningOp();
          return maker && maker->getBlock() == ahead->getBlock() && !maker->isBeforeInBlock(ahead);
        });
        if (dependsOnIt && !isa<ReshapeOp>(op))
          return op->emitError() << "operation: between a scan that is ahead and the next; expected it after both";
        if (!dependsOnIt)
          op->moveBefore(ahead);
        op = next;
      }
    }
    return success();
  }

  /// Inserts a copy, as a kiln.concat of one value that the entry-point code executes.
  static void insertCopy(OpOperand &operand) {
    OpBuilder builder(operand.getOwner());
    if (isa_and_nonnull<SlideOp, StateOp>(getViewed(operand.get()).getDefiningOp()))
      builder.setInsertionPointAfterValue(operand.get()); // before it is replaced
    Location loc = operand.getOwner()->getLoc();
    auto type = cast<RankedTensorType>(operand.get().getType());
    auto rows = type.getRank() > 0 ? type : RankedTensorType::get({1}, type.getElementType());
    auto viewAs = [&](RankedTensorType wanted, Value value) {
      return value.getType() == wanted ? value : ReshapeOp::create(builder, loc, wanted, value).getResult();
    };
    operand.set(viewAs(type, ConcatOp::create(builder, loc, rows, viewAs(rows, operand.get()), 0)));
  }
};

} // namespace
} // namespace mlir::kiln
