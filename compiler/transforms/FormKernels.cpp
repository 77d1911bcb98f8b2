// SPDX-License-Identifier: Apache-2.0
//
// 1. Moves parameters and constants to the front of their block, so that calls can be inserted anywhere after them.
// 2. Adds the frequency table to kiln.sinusoidal.
// 3. Sinks views that drop axes of size one below elementwise ops. Where kernels write rows of states, turns appended
// columns of their results into slices.
// 4. Groups each block (of an entry, of a loop's body); each group becomes a kernel and a call. On CPUs, a group that
// only flushes small floats of a state to 0 becomes part of its kiln.store.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/transforms/KernelNames.h"
#include "compiler/transforms/OutlineKernel.h"
#include "compiler/transforms/RowsInPlace.h"
#include "compiler/transforms/ScanKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_FORMKERNELS
#include "compiler/transforms/Passes.h.inc"

namespace {

/// Rows of the table: the frequency in units of 2^-32 turns, without whole turns; the rounding remainder, at most half
/// a unit, as the bits of a float; the phase in those units (the odd columns are cosines); for f32 positions, the bits
/// of the frequency in turns; if pairs have axes, these.
DenseElementsAttr createFrequencies(SinusoidalOp op) {
  const SmallVector<double> frequencies = op.getPairFrequencies();
  const auto width = static_cast<int64_t>(2 * frequencies.size());
  const bool hasFloats = isa<FloatType>(getElementTypeOrSelf(op.getPositions().getType()));
  SmallVector<int32_t> values(3 * width);
  for (int64_t c = 0; c < width; ++c) {
    const double turns = frequencies[c / 2] / (2 * llvm::numbers::pi);
    const double units = std::ldexp(turns, 32), whole = std::round(units);
    values[c] = static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(whole)));
    values[width + c] = llvm::bit_cast<int32_t>(static_cast<float>(units - whole));
    values[2 * width + c] = c % 2 ? 1 << 30 : 0;
  }
  if (hasFloats)
    for (int64_t c = 0; c < width; ++c)
      values.push_back(llvm::bit_cast<int32_t>(static_cast<float>(frequencies[c / 2] / (2 * llvm::numbers::pi))));
  for (int32_t axis : op.getAxes())
    values.append(2, axis);
  const auto rows = static_cast<int64_t>(values.size()) / width;
  return DenseElementsAttr::get(RankedTensorType::get({rows, width}, IntegerType::get(op.getContext(), 32)),
                                ArrayRef(values));
}

void addFrequencies(SinusoidalOp op) {
  OpBuilder builder(op);
  Value table = ConstantOp::create(builder, op.getLoc(), createFrequencies(op));
  op.replaceAllUsesWith(SinusoidOp::create(builder, op.getLoc(), op.getType(), op.getPositions(), table).getResult());
  op.erase();
}

void hoistSources(Block &block) {
  SmallVector<Operation *> sources;
  for (Operation &op : block)
    if (isa<ParameterOp, ConstantOp>(op))
      sources.push_back(&op);
  for (Operation *op : llvm::reverse(sources))
    op->moveBefore(&block, block.begin());
}

/// Recomputes free values that are shared by all sequences inside the per-sequence block, as the single-sequence entry
/// does: the kernels are then the same, and so are their results to the bit.
void sinkShared(Block &block) {
  auto isSunk = [&](Value value) {
    Operation *source = value.getDefiningOp();
    auto inKernel = dyn_cast_or_null<KernelOpInterface>(source);
    return inKernel && !isHostOp(source) && source->getBlock() != &block &&
           inKernel.getElementCost() == ElementCost::Free;
  };
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (Operation &op : llvm::make_early_inc_range(block))
      for (OpOperand &operand : op.getOpOperands())
        if (isSunk(operand.get())) {
          Operation *copy = OpBuilder(&op).clone(*operand.get().getDefiningOp());
          operand.set(copy->getResult(cast<OpResult>(operand.get()).getResultNumber()));
          isChanged = true;
        }
  }
}

/// Moves reshapes that drop leading axes of size one from the result of a reducing op, such as from a row of an image
/// to a signal, below the elementwise ops that follow, so that these are fused as its epilogue.
void sinkDroppedAxes(Block &block) {
  auto extentsOf = [](Value value) { return getExtents(cast<RankedTensorType>(value.getType())); };
  for (auto first : llvm::to_vector(block.getOps<ReshapeOp>())) {
    auto inKernel = dyn_cast_or_null<KernelOpInterface>(first.getX().getDefiningOp());
    if (!inKernel || inKernel.isLazy() || inKernel->getBlock() != &block || !first.getX().hasOneUse())
      continue;
    for (ReshapeOp view = first; view && view.getResult().hasOneUse();) {
      Operation *user = *view.getResult().getUsers().begin();
      const SmallVector<AffineExpr> whole = extentsOf(view.getX()), kept = extentsOf(view.getResult());
      const size_t dropped = whole.size() - kept.size();
      const bool isDropping =
          whole.size() > kept.size() && ArrayRef(whole).drop_front(dropped) == ArrayRef(kept) &&
          llvm::all_of(ArrayRef(whole).take_front(dropped), [](AffineExpr extent) { return isConstant(extent, 1); });
      if (!isDropping || user->getBlock() != &block || !hasRole(user, KernelRole::Pointwise) ||
          user->getNumResults() != 1 || extentsOf(user->getResult(0)) != kept)
        break;
      OpBuilder builder(user);
      auto typeOf = [&](Value value) {
        return getTensorType(whole, getElementTypeOrSelf(value.getType()),
                             getNumSymbols(cast<RankedTensorType>(value.getType())));
      };
      for (OpOperand &operand : user->getOpOperands())
        if (operand.get() == view.getResult())
          operand.set(view.getX());
        else if (extentsOf(operand.get()) == kept)
          operand.set(ReshapeOp::create(builder, user->getLoc(), typeOf(operand.get()), operand.get()));
      Value result = user->getResult(0);
      const auto type = cast<RankedTensorType>(result.getType());
      result.setType(typeOf(result));
      builder.setInsertionPointAfter(user);
      auto after = ReshapeOp::create(builder, user->getLoc(), type, result);
      result.replaceAllUsesExcept(after.getResult(), after);
      view.erase();
      view = after;
    }
  }
}

/// Returns the axis of `type` along which a range of the last columns is a slice: the axes from it on flatten to
/// `ofColumns` columns, of which `count` columns from `first` form a contiguous range of the axis. Returns nullopt if
/// there is no such axis.
std::optional<int64_t> findAxis(RankedTensorType type, int64_t ofColumns, int64_t first, int64_t count) {
  int64_t inner = 1;
  for (int64_t axis = type.getRank() - 1; axis > 0 && !type.isDynamicDim(axis); inner *= type.getDimSize(axis--))
    if (inner * type.getDimSize(axis) == ofColumns)
      return first % inner == 0 && count % inner == 0 ? std::optional(axis) : std::nullopt;
  return std::nullopt;
}

/// Replaces columns that are appended to a state by slices of the value that the block computes. (The canonical form is
/// the reverse: without a kernel for them the copy costs the same.)
void sliceAppended(Block &block) {
  for (AppendOp append : block.getOps<AppendOp>()) {
    auto rows = cast<RankedTensorType>(append.getX().getType()), kept = cast<RankedTensorType>(append.getType());
    Value source = append.getX();
    while (auto view = source.getDefiningOp<ReshapeOp>())
      source = view.getX();
    Operation *maker = source.getDefiningOp();
    if (rows.getRank() < 2 || !maker || maker->getBlock() != &block || isHostOp(maker))
      continue;
    auto whole = cast<RankedTensorType>(source.getType());
    const int64_t all = rows.getShape().back(), count = kept.getShape().back();
    std::optional<int64_t> axis = findAxis(whole, all, append.getColumn(), count);
    if (all == count || !axis)
      continue;
    const int64_t inner = all / whole.getDimSize(*axis);
    OpBuilder builder(append);
    SmallVector<AffineExpr> extents = getExtents(whole), flat = getExtents(rows);
    extents[*axis] = builder.getAffineConstantExpr(count / inner);
    flat.back() = builder.getAffineConstantExpr(count);
    Value slice =
        SliceOp::create(builder, append.getLoc(), getTensorType(extents, whole.getElementType(), getNumSymbols(whole)),
                        source, *axis, append.getColumn() / inner, /*at_end=*/false);
    auto type = getTensorType(flat, rows.getElementType(), getNumSymbols(rows));
    append.getXMutable().assign(
        slice.getType() == type ? slice : Value(ReshapeOp::create(builder, append.getLoc(), type, slice)));
    append.setColumn(0);
  }
}

/// Returns the only store that reads the group's result, if the group just flushes small floats to 0 and has few bytes:
/// the entry-point code then flushes them while it copies.
StoreOp getFlushingStore(const KernelGroup &group) {
  if (group.results.size() != 1 || !getUnflushed(group.results[0]))
    return {};
  auto where = group.results[0].getDefiningOp<WhereOp>();
  auto less = where.getCondition().getDefiningOp<LessOp>();
  if (!llvm::all_of(group.ops, [&](Operation *op) {
        return op == where || op == less || op == less.getLhs().getDefiningOp() || isa<ConstantOp>(op);
      }))
    return {};
  auto type = cast<RankedTensorType>(where.getType());
  const bool isSmall =
      type.hasStaticShape() && storedBytes(type.getElementType(), type.getNumElements()) <= mostHostCopyBytes;
  return isSmall && where->hasOneUse() ? dyn_cast<StoreOp>(*where->user_begin()) : StoreOp();
}

struct FormKernels : impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;
  FormKernels(MayJoinFunction mayJoin, const FormKernelsOptions &options)
      : FormKernelsBase(options), mayJoin(std::move(mayJoin)) {}

  void runOnOperation() override {
    SmallVector<func::FuncOp> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(entryAttrName))
        entries.push_back(function);
    for (func::FuncOp entry : entries) {
      entry.walk([](SinusoidalOp op) { addFrequencies(op); });
      entry.walk([](EachSequenceOp loop) { sinkShared(loop.getBody().front()); });
      formIn(entry.getBody().front(), entry);
    }
  }

private:
  void formIn(Block &block, func::FuncOp entry) {
    hoistSources(block);
    if (runsScans)
      outlineScans(block, entry);
    sinkDroppedAxes(block);
    if (writesStates)
      sliceAppended(block);
    const GroupingRules rules{mayJoin, writesStates, normsSingleRows, joinsSums, callsGroups};
    SmallVector<KernelGroup> groups = groupKernels(block, rules);
    auto isInternalUse = [&](Operation *user, Operation *producer) {
      return llvm::any_of(groups,
                          [&](const KernelGroup &group) { return group.contains(user) && group.contains(producer); });
    };
    if (!writesStates)
      llvm::erase_if(groups, [](const KernelGroup &group) {
        StoreOp store = getFlushingStore(group);
        if (store) {
          store.getXMutable().assign(group.results[0].getDefiningOp<WhereOp>().getRhs());
          store.setFlushed(true);
        }
        return store != nullptr;
      });
    CalledValues called;
    for (const KernelGroup &group : groups) {
      const std::string name = nextName(describeGroup(group));
      const bool isByGroup = callsGroups && isa<GroupedLinearOp>(group.anchor);
      recordScope(isByGroup ? outlineGroups(group, entry, name, isInternalUse, called)
                            : outlineKernel(group, entry, name, isInternalUse, called),
                  group.anchor->getLoc());
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if ((!isHostOp(&op) || isa<ReshapeOp>(op)) && op.use_empty())
        op.erase();
    for (auto loop : block.getOps<LoopInterface>())
      formIn(loop->getRegion(0).front(), entry);
  }

  void outlineScans(Block &block, func::FuncOp entry) {
    for (ScanOp scan : llvm::to_vector(block.getOps<ScanOp>())) {
      const Location loc = scan.getLoc();
      if (func::FuncOp kernel = outlineScan(scan, entry, nextName("scan")))
        recordScope(kernel, loc);
      else
        --count;
    }
  }

  std::string nextName(const std::string &what) {
    std::string name;
    do
      name = what + "_" + std::to_string(count++);
    while (getOperation().lookupSymbol(name));
    return name;
  }

  MayJoinFunction mayJoin;
  int64_t count = 0;
};

} // namespace

std::unique_ptr<Pass> createFormKernels(GroupingRules rules) {
  return std::make_unique<FormKernels>(std::move(rules.mayJoin),
                                       FormKernelsOptions{rules.writesStates, rules.normsSingleRows, rules.joinsSums,
                                                          rules.callsGroups, rules.runsScans});
}

} // namespace mlir::kiln
