// SPDX-License-Identifier: Apache-2.0
//
// Copies until no conflict is left. A copy at a loop's end reads the yielded value when the carried one is dead; where
// two carried values change places, the second round copies the copy.
#include "compiler/transforms/Passes.h"

#include "compiler/transforms/OutlineKernel.h"
#include "compiler/transforms/PlanMemory.h"
#include "compiler/transforms/ShareBuffers.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
          insertCopy(*operand, entry);
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
  /// Behind a loop that is ahead stands its follower: what is between them comes before both, but for views of what the
  /// first one stacks.
  LogicalResult joinLoops(func::FuncOp entry) {
    for (ScanOp ahead : llvm::to_vector(entry.getOps<ScanOp>())) {
      if (ahead.getAhead() == 0)
        continue;
      ScanOp follower = getFollower(ahead);
      if (!follower || follower.getTripCount() != ahead.getTripCount())
        return ahead.emitError() << "a scan that is ahead requires one of as many iterations behind it";
      for (Operation *op = ahead->getNextNode(); op != follower;) {
        Operation *next = op->getNextNode();
        const bool dependsOnIt = llvm::any_of(op->getOperands(), [&](Value operand) {
          Operation *maker = operand.getDefiningOp();
          return maker && maker->getBlock() == ahead->getBlock() && !maker->isBeforeInBlock(ahead);
        });
        if (dependsOnIt && !isa<ReshapeOp>(op))
          return op->emitError() << "stands between a scan that is ahead and the one behind it";
        if (!dependsOnIt)
          op->moveBefore(ahead);
        op = next;
      }
    }
    return success();
  }

  void insertCopy(OpOperand &operand, func::FuncOp entry) {
    OpBuilder builder(operand.getOwner());
    if (getViewed(operand.get()).getDefiningOp<StateOp>())
      builder.setInsertionPointAfterValue(operand.get()); // before it is replaced
    Location loc = operand.getOwner()->getLoc();
    auto type = cast<RankedTensorType>(operand.get().getType());
    // As rows: the copy is of any shape with as many elements.
    SmallVector<AffineExpr> extents = getExtents(type), rows;
    if (!extents.empty())
      rows = {getProduct(ArrayRef(extents).drop_back(), type.getContext()), extents.back()};
    auto rowsType = getTensorType(rows, type.getElementType(), getNumSymbols(type));
    Value view =
        rowsType == type ? operand.get() : ReshapeOp::create(builder, loc, rowsType, operand.get()).getResult();

    SmallVector<Value> values;
    SmallVector<Interval> intervals, bounds = getSymbolBounds(entry);
    for (AffineExpr extent : rows)
      if (!isa<AffineConstantExpr>(extent)) {
        values.push_back(createEntryExtent(builder, loc, extent, entry));
        const Interval rough = getBounds(extent, bounds).value_or(Interval{1, std::numeric_limits<int32_t>::max()});
        intervals.push_back({std::max<int64_t>(1, rough.min), rough.max});
      }
    func::FuncOp kernel = getCopyKernel(rowsType, intervals, entry);
    auto call = CallOp::create(builder, loc, TypeRange(rowsType), FlatSymbolRefAttr::get(kernel), values, view);
    recordWork(call, kernel);
    Value copy = call.getResult(0);
    operand.set(rowsType == type ? copy : ReshapeOp::create(builder, loc, type, copy).getResult());
  }

  /// One kernel for all copies of a rank, element type and fixed extents.
  func::FuncOp getCopyKernel(RankedTensorType rows, ArrayRef<Interval> intervals, func::FuncOp entry) {
    MLIRContext *context = rows.getContext();
    SmallVector<AffineExpr> extents = getExtents(rows);
    for (unsigned symbol = 0; AffineExpr &extent : extents)
      if (!isa<AffineConstantExpr>(extent))
        extent = getAffineSymbolExpr(symbol++, context);
    auto type = getTensorType(extents, rows.getElementType(), intervals.size());
    func::FuncOp &kernel = copies[type];
    if (kernel) {
      SmallVector<int64_t> bounds(kernel->getAttrOfType<DenseI64ArrayAttr>(boundsAttrName).asArrayRef());
      for (auto [i, interval] : llvm::enumerate(intervals)) {
        bounds[2 * i] = std::min(bounds[2 * i], interval.min);
        bounds[2 * i + 1] = std::max(bounds[2 * i + 1], interval.max);
      }
      kernel->setAttr(boundsAttrName, DenseI64ArrayAttr::get(context, bounds));
      return kernel;
    }

    OpBuilder builder(entry);
    Location loc = entry.getLoc();
    SmallVector<Type> inputs(intervals.size(), builder.getIndexType());
    inputs.push_back(type);
    int64_t number = 0;
    std::string name;
    do
      name = "copy_" + std::to_string(number++);
    while (getOperation().lookupSymbol(name));
    kernel = func::FuncOp::create(builder, loc, name, builder.getFunctionType(inputs, type));
    kernel.setPrivate();
    SmallVector<int64_t> bounds;
    for (Interval interval : intervals)
      bounds.append({interval.min, interval.max});
    kernel->setAttr(kernelAttrName, builder.getUnitAttr());
    kernel->setAttr(boundsAttrName, builder.getDenseI64ArrayAttr(bounds));
    kernel->setAttr(inplaceAttrName, builder.getDenseI64ArrayAttr(0));

    Block *body = kernel.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    ValueRange sizes = body->getArguments().drop_back();
    Value empty = tensor::EmptyOp::create(builder, loc, type, sizes);
    AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    auto copy = linalg::GenericOp::create(builder, loc, type, body->getArguments().back(), empty, {identity, identity},
                                          iterators, [](OpBuilder &nested, Location loc, ValueRange elements) {
                                            linalg::YieldOp::create(nested, loc, elements[0]);
                                          });
    func::ReturnOp::create(builder, loc, copy.getResults());
    return kernel;
  }

  DenseMap<Type, func::FuncOp> copies;
};

} // namespace
} // namespace mlir::kiln
