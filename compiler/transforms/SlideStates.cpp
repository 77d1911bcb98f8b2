// SPDX-License-Identifier: Apache-2.0
//
// 1. Finds the states for which a store keeps the last rows of the state and of new rows: the frames that a convolution
// over a stream needs again, the keys of an attention window.
// 2. Gives each state room for twice its rows plus the most new rows of any entry, if that is little memory, or not
// much more than the rows. The state is a ring in which rows are stored twice (compiler/hostcode/HostLoops.cpp): its
// rows are contiguous wherever they start, and a call copies only its new rows.
// 3. Replaces the concats whose last rows are stored by kiln.slide. In batched entries also replaces those of other
// loops over the sequences, so that these have the kernels of the single-sequence entry.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/transforms/RowsInPlace.h"
#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_SLIDESTATES
#include "compiler/transforms/Passes.h.inc"

Value getUnflushed(Value value) {
  auto where = value.getDefiningOp<WhereOp>();
  auto less = where ? where.getCondition().getDefiningOp<LessOp>() : LessOp();
  auto abs = less ? less.getLhs().getDefiningOp<AbsOp>() : AbsOp();
  const bool isFlush = abs && abs.getX() == where.getRhs() &&
                       getSplat(less.getRhs()) == ::kiln::least_state_magnitude && getSplat(where.getLhs()) == 0;
  return isFlush ? where.getRhs() : Value();
}

SlideOp getSlide(StoreOp store) {
  auto last = getUnshaped(store.getX()).getDefiningOp<SliceOp>();
  auto slide = last && last.getAxis() == 0 ? last.getX().getDefiningOp<SlideOp>() : SlideOp();
  if (!slide || slide.getName() != store.getName() || slide->getBlock() != store->getBlock())
    return {};
  auto extentOf = [](Value value) { return getExtents(cast<RankedTensorType>(value.getType())).front(); };
  const AffineExpr end = last.getAtEnd() ? extentOf(last.getX()) : extentOf(last.getResult()) + last.getStart();
  const bool isRight = canonicalExtent(extentOf(slide.getResult()) - end) == 0 &&
                       isConstant(extentOf(last.getResult()), static_cast<int64_t>(store.getRows()));
  return isRight ? slide : SlideOp();
}

namespace {

/// A state's rows followed by other rows.
struct Longer {
  ConcatOp concat;
  StateOp state;
  int64_t most = 0; // maximum number of other rows
};

/// Matches a concat of the state's rows and others, in one block.
std::optional<Longer> getLonger(ConcatOp concat) {
  if (!concat || concat.getAxis() != 0 || concat.getInputs().size() != 2)
    return std::nullopt;
  auto state = concat.getInputs().front().getDefiningOp<StateOp>();
  if (!state || state->getBlock() != concat->getBlock())
    return std::nullopt;
  auto rows = cast<RankedTensorType>(state.getType());
  const AffineExpr others = getExtents(cast<RankedTensorType>(concat.getInputs().back().getType())).front();
  auto bounds = getBounds(others, getSymbolBounds(concat));
  if (rows.getShape().front() != static_cast<int64_t>(state.getRows()) || !isRowsInPlace(concat) || !bounds)
    return std::nullopt;
  return Longer{concat, state, bounds->max};
}

/// A store that keeps the last rows of a state and of other rows.
struct Sliding {
  StoreOp store;
  SliceOp last;
  Longer longer;
  bool isFlushed = false;
};

std::optional<Sliding> getSliding(StoreOp store) {
  Value kept = getUnflushed(store.getX());
  auto last = (kept ? kept : store.getX()).getDefiningOp<SliceOp>();
  if (!last || last.getAxis() != 0)
    return std::nullopt;
  auto longer = getLonger(last.getX().getDefiningOp<ConcatOp>());
  if (!longer || longer->state.getName() != store.getName() || longer->concat->getBlock() != store->getBlock())
    return std::nullopt;
  auto extentOf = [](Value value) { return getExtents(cast<RankedTensorType>(value.getType())).front(); };
  const AffineExpr skipped = extentOf(last.getX()) - extentOf(last.getResult());
  if (!last.getAtEnd() && canonicalExtent(skipped - last.getStart()) != 0)
    return std::nullopt;
  return Sliding{store, last, *longer, kept || store.getFlushed()};
}

} // namespace

SmallVector<Operation *> getKeptRows(StoreOp store) {
  std::optional<Sliding> sliding = getSliding(store);
  if (!sliding)
    return {};
  SmallVector<Operation *> ops{sliding->last};
  if (getUnflushed(store.getX())) {
    auto where = store.getX().getDefiningOp<WhereOp>();
    Operation *less = where.getCondition().getDefiningOp();
    ops.append({less->getOperand(0).getDefiningOp(), less, where});
  }
  return ops;
}

namespace {

struct SlideStates : impl::SlideStatesBase<SlideStates> {
  using SlideStatesBase::SlideStatesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (Group group : {Group::Ranks, Group::Replicas, Group::Stages})
      if (getNumRanks(module, group) > 1)
        return;
    llvm::MapVector<StringAttr, int64_t> most; // state -> maximum number of new rows
    llvm::SmallDenseSet<StringAttr> others;    // states that do not slide
    SmallVector<Sliding> found;
    const WalkResult walked = module.walk([&](Operation *op) {
      if (isa<AssignOp>(op)) // checkpoints of a training hold states in row order
        return WalkResult::interrupt();
      if (auto append = dyn_cast<AppendOp>(op))
        others.insert(append.getNameAttr());
      auto store = dyn_cast<StoreOp>(op);
      if (std::optional<Sliding> sliding = store ? getSliding(store) : std::nullopt) {
        int64_t &rows = most[store.getNameAttr()];
        rows = std::max(rows, sliding->longer.most);
        found.push_back(*sliding);
      }
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return;
    for (Sliding &sliding : found)
      if (StringAttr name = sliding.store.getNameAttr(); roomOf(sliding.longer.state, most.lookup(name)) == 0)
        others.insert(name);
    most.remove_if([&](const auto &state) { return others.contains(state.first); });
    for (Sliding &sliding : found)
      if (auto state = most.find(sliding.store.getNameAttr()); state != most.end())
        slide(sliding, state->second);
    module.walk([&](EachSequenceOp loop) { slideOthers(loop.getBody().front(), most); });
  }

private:
  /// Returns the rows of memory for the state; 0 if it is more than the entry-point code copies, and more than four
  /// times the state's rows.
  static int64_t roomOf(StateOp state, int64_t most) {
    auto type = cast<RankedTensorType>(state.getType());
    const int64_t rows = type.getShape().front(), room = 2 * rows + most;
    const int64_t bytes = storedBytes(type.getElementType(), type.getNumElements()) / rows * room;
    return bytes <= mostHostCopyBytes || room <= 4 * rows ? room : 0;
  }

  static void slide(const Longer &longer, int64_t most) {
    ConcatOp concat = longer.concat;
    StateOp state = longer.state;
    OpBuilder builder(concat);
    auto slid = SlideOp::create(builder, concat.getLoc(), concat.getType(), concat.getInputs().back(), state.getName(),
                                state.getCopies(), state.getRows(), roomOf(state, most));
    concat.replaceAllUsesWith(slid.getResult());
    concat.erase();
  }

  static void slide(Sliding &sliding, int64_t most) {
    sliding.store.getXMutable().assign(sliding.last.getResult());
    sliding.store.setFlushed(sliding.isFlushed);
    slide(sliding.longer, most);
  }

  /// A state has one such window per block.
  static void slideOthers(Block &block, const llvm::MapVector<StringAttr, int64_t> &most) {
    llvm::SmallDenseSet<Attribute> taken;
    for (SlideOp slid : block.getOps<SlideOp>())
      taken.insert(slid.getNameAttr());
    for (ConcatOp concat : llvm::to_vector(block.getOps<ConcatOp>())) {
      std::optional<Longer> longer = getLonger(concat);
      auto state = longer ? most.find(longer->state.getNameAttr()) : most.end();
      if (state != most.end() && longer->most <= state->second && taken.insert(state->first).second)
        slide(*longer, state->second);
    }
  }
};

} // namespace
} // namespace mlir::kiln
