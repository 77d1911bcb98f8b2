// SPDX-License-Identifier: Apache-2.0
//
// Sequence parallelism: between tensor-parallel layers each rank has its share of the rows (Korthikanti et al. 2022,
// section 4.2.2):
//
// 1. Each all-reduce after a row-parallel layer or a table is a seed. Starting there, ops that work on each row
// independently are added as long as their results have the same rows: norms, residuals, loop-carried values.
// 2. An all-reduce becomes a reduce_scatter. Where all rows are needed, as by a column-parallel layer, they are
// gathered; of values that all ranks have, a rank reads its rows.
#include "compiler/parallel/Passes.h"

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_SHARDROWS
#include "compiler/parallel/Passes.h.inc"

namespace {

class RowSharding {
public:
  RowSharding(func::FuncOp function, int64_t ranks) : function(function), ranks(ranks), builder(function) {}

  /// Returns whether there was a sum whose rows could be split.
  bool run();

private:
  std::optional<unsigned> rowAxis(AllReduceOp sum) const;
  bool canSplit(Value value, unsigned axis) const;
  void add(Value value, unsigned axis);
  void follow(Value value, unsigned axis);
  void followOp(Operation *op, unsigned axis);
  void addCarried(LoopInterface loop, unsigned number, unsigned axis);
  /// Returns the axis of an operand that corresponds to the result's axis, aligned at the last axis; nullopt if it has
  /// none.
  std::optional<unsigned> axisIn(Value operand, Value result, unsigned axis) const;
  bool readsRows(OpOperand &use) const;
  void findReads();
  void findReads(Operation *op, Value result, unsigned axis);
  void changeTypes();
  Value gather(GradientBuilder &b, Value own, unsigned axis, bool apart);
  Value pick(GradientBuilder &b, Value all, unsigned axis);
  Value divided(GradientBuilder &b, Value all, unsigned axis);
  void scatter(AllReduceOp sum, unsigned axis);
  void gatherFor(OpOperand &use, unsigned axis);
  void setStep(DropoutOp dropout);

  func::FuncOp function;
  const int64_t ranks;
  OpBuilder builder;
  llvm::MapVector<Value, unsigned> rows; // values with the axis that is split
  SmallVector<Value> waiting;
  SmallVector<std::pair<OpOperand *, unsigned>> gathered, picked; // uses with the axis
  SmallVector<OpOperand *> alike;                                 // uses whose gradients are partial sums over ranks
  llvm::DenseMap<std::pair<Value, Block *>, Value> wholes;        // gathered values
};

/// Whether the op works on each row independently and changes with the number of rows only in its result type.
bool worksOnRows(Operation *op) {
  return op->getNumResults() == 1 && isa<FloatType>(rankedType(op->getResult(0)).getElementType()) &&
         (isa<LayerNormOp, RmsNormOp>(op) ||
          (hasRole(op, KernelRole::Pointwise) && !isa<QuantizeRowsOp, ConstantOp>(op)));
}

/// Returns the first axis, other than the columns', that the ranks divide evenly. Partial sums of f16 and bf16 are
/// accumulated in f32.
std::optional<unsigned> RowSharding::rowAxis(AllReduceOp sum) const {
  auto widened = sum.getX().getDefiningOp<CastOp>();
  Value part = widened ? widened.getX() : sum.getX();
  auto lookup = part.getDefiningOp<WhereOp>();
  if (!part.getDefiningOp<LinearOp>() && !(lookup && lookup.getLhs().getDefiningOp<EmbeddingOp>()))
    return std::nullopt;
  RankedTensorType type = sum.getType();
  for (unsigned axis = 0; axis + 1 < type.getRank(); ++axis)
    if (!type.isDynamicDim(axis) && type.getDimSize(axis) % ranks == 0)
      return axis;
  return std::nullopt;
}

bool RowSharding::canSplit(Value value, unsigned axis) const {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<RepeatOp>(argument.getOwner()->getParentOp());
    return loop && argument.getArgNumber() < cast<LoopInterface>(*loop).getNumCarried();
  }
  Operation *op = value.getDefiningOp();
  if (auto sum = dyn_cast<AllReduceOp>(op))
    return rowAxis(sum) == axis;
  if (auto loop = dyn_cast<RepeatOp>(op))
    return cast<OpResult>(value).getResultNumber() < cast<LoopInterface>(*loop).getNumCarried();
  return worksOnRows(op) && axis + 1 < rankedType(value).getRank();
}

void RowSharding::add(Value value, unsigned axis) {
  if (canSplit(value, axis) && rows.insert({value, axis}).second)
    waiting.push_back(value);
}

std::optional<unsigned> RowSharding::axisIn(Value operand, Value result, unsigned axis) const {
  const RankedTensorType from = rankedType(operand), to = rankedType(result);
  const int64_t fromEnd = to.getRank() - axis;
  if (from.getRank() < fromEnd || from.getDimSize(from.getRank() - fromEnd) != to.getDimSize(axis))
    return std::nullopt;
  return from.getRank() - fromEnd;
}

void RowSharding::addCarried(LoopInterface loop, unsigned number, unsigned axis) {
  add(loop->getOperand(number), axis);
  add(loop.getCarried()[number], axis);
  add(loop.getYield()->getOperand(number), axis);
  add(loop->getResult(number), axis);
}

void RowSharding::followOp(Operation *op, unsigned axis) {
  if (!worksOnRows(op))
    return;
  add(op->getResult(0), axis);
  for (Value operand : op->getOperands().take_front(isa<LayerNormOp, RmsNormOp>(op) ? 1 : op->getNumOperands()))
    if (auto own = axisIn(operand, op->getResult(0), axis))
      add(operand, *own);
}

void RowSharding::follow(Value value, unsigned axis) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    addCarried(cast<LoopInterface>(argument.getOwner()->getParentOp()), argument.getArgNumber(), axis);
  else if (auto loop = value.getDefiningOp<RepeatOp>())
    addCarried(loop, cast<OpResult>(value).getResultNumber(), axis);
  else
    followOp(value.getDefiningOp(), axis);
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    auto loop = dyn_cast<RepeatOp>(isa<YieldOp>(user) ? user->getParentOp() : user);
    if (loop && use.getOperandNumber() < cast<LoopInterface>(*loop).getNumCarried())
      addCarried(loop, use.getOperandNumber(), axis);
    else if (user->getNumResults() == 1 && user->getBlock() == value.getParentBlock() &&
             (!isa<LayerNormOp, RmsNormOp>(user) || use.getOperandNumber() == 0)) {
      const int64_t further = rankedType(user->getResult(0)).getRank() - rankedType(value).getRank();
      if (worksOnRows(user) && axisIn(value, user->getResult(0), axis + further))
        followOp(user, axis + further);
    }
  }
}

/// Whether the op needs only the rank's rows of the value.
bool RowSharding::readsRows(OpOperand &use) const {
  Operation *user = use.getOwner();
  const unsigned number = use.getOperandNumber();
  if (auto loop = dyn_cast<RepeatOp>(isa<YieldOp>(user) ? user->getParentOp() : user))
    return number < cast<LoopInterface>(*loop).getNumCarried() && rows.contains(loop->getResult(number));
  return worksOnRows(user) && rows.contains(user->getResult(0)) && (!isa<LayerNormOp, RmsNormOp>(user) || number == 0);
}

void RowSharding::findReads(Operation *op, Value result, unsigned axis) {
  if (auto loop = dyn_cast<RepeatOp>(op)) {
    const unsigned number = cast<OpResult>(result).getResultNumber();
    for (OpOperand *operand : {&op->getOpOperand(number), &cast<LoopInterface>(op).getYield()->getOpOperand(number)})
      if (!rows.contains(operand->get()))
        picked.push_back({operand, axis});
    return;
  }
  if (!worksOnRows(op))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    auto own = axisIn(operand.get(), result, axis);
    const bool isNorms = isa<LayerNormOp, RmsNormOp>(op) && operand.getOperandNumber() > 0;
    if (rows.contains(operand.get()) && readsRows(operand))
      continue;
    if (own && !isNorms)
      picked.push_back({&operand, *own});
    else if (isa<FloatType>(rankedType(operand.get()).getElementType()) && !operand.get().getDefiningOp<ConstantOp>())
      alike.push_back(&operand);
  }
}

void RowSharding::findReads() {
  for (auto [value, axis] : rows) {
    if (Operation *op = value.getDefiningOp())
      findReads(op, value, axis);
    for (OpOperand &use : value.getUses())
      if (!readsRows(use))
        gathered.push_back({&use, axis});
  }
}

void RowSharding::changeTypes() {
  for (auto [value, axis] : rows) {
    RankedTensorType type = rankedType(value);
    SmallVector<AffineExpr> extents = getExtents(type);
    extents[axis] = builder.getAffineConstantExpr(type.getDimSize(axis) / ranks);
    value.setType(getTensorType(extents, type.getElementType(), getNumSymbols(type)));
  }
}

/// Reshapes [..., all rows, ...] to [..., ranks, rows, ...].
Value RowSharding::divided(GradientBuilder &b, Value all, unsigned axis) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(all));
  const int64_t count = rankedType(all).getDimSize(axis);
  extents[axis] = builder.getAffineConstantExpr(count / ranks);
  extents.insert(extents.begin() + axis, builder.getAffineConstantExpr(ranks));
  return b.reshape(all, extents);
}

static Value movedAxis(GradientBuilder &b, Value x, unsigned from, unsigned to) {
  if (from == to)
    return x;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(rankedType(x).getRank()));
  permutation.erase(permutation.begin() + from);
  permutation.insert(permutation.begin() + to, from);
  return b.transpose(x, permutation);
}

Value RowSharding::gather(GradientBuilder &b, Value own, unsigned axis, bool apart) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(own)), parts = extents;
  parts.insert(parts.begin(), builder.getAffineConstantExpr(ranks));
  extents[axis] = builder.getAffineConstantExpr(rankedType(own).getDimSize(axis) * ranks);
  Value all = b.createAs<AllGatherOp>(b.typeOf(parts, own), own, Group::Ranks, apart);
  return b.reshape(movedAxis(b, all, 0, axis), extents);
}

Value RowSharding::pick(GradientBuilder &b, Value all, unsigned axis) {
  Value rank = b.createAs<RankOp>(RankedTensorType::get({}, builder.getI32Type()), Group::Ranks);
  return b.create<GatherOp>(divided(b, all, axis), rank, axis);
}

void RowSharding::scatter(AllReduceOp sum, unsigned axis) {
  builder.setInsertionPoint(sum);
  GradientBuilder b(builder, sum.getLoc());
  Value parts = movedAxis(b, divided(b, sum.getX(), axis), axis, 0);
  sum.getResult().replaceAllUsesWith(b.createAs<ReduceScatterOp>(sum.getResult().getType(), parts, Group::Ranks));
  sum.erase();
}

/// Gathers all rows for a use. Where ranks compute different results from the value, its gradient is a partial sum on
/// each rank, and reduced to the owner of the rows.
void RowSharding::gatherFor(OpOperand &use, unsigned axis) {
  Value own = use.get();
  GradientBuilder b(builder, use.getOwner()->getLoc());
  if (auto toRanks = dyn_cast<ToRanksOp>(use.getOwner())) {
    builder.setInsertionPoint(toRanks);
    toRanks.getResult().replaceAllUsesWith(gather(b, own, axis, /*apart=*/true));
    toRanks.erase();
    return;
  }
  Value &all = wholes[{own, use.getOwner()->getBlock()}];
  if (!all) {
    if (own.getParentBlock() == use.getOwner()->getBlock())
      builder.setInsertionPointAfterValue(own);
    else
      builder.setInsertionPointToStart(use.getOwner()->getBlock());
    all = gather(b, own, axis, /*apart=*/false);
  }
  use.set(all);
}

/// Makes ranks drop different elements: rank i in step t uses step t * ranks + i.
void RowSharding::setStep(DropoutOp dropout) {
  builder.setInsertionPoint(dropout);
  GradientBuilder b(builder, dropout.getLoc());
  auto type = RankedTensorType::get({}, builder.getI32Type());
  Value count = b.create<ConstantOp>(DenseElementsAttr::get(type, static_cast<int32_t>(ranks)));
  dropout.getStepMutable().assign(b.add(b.mul(dropout.getStep(), count), b.createAs<RankOp>(type, Group::Ranks)));
}

bool RowSharding::run() {
  function.walk([&](AllReduceOp sum) {
    if (auto axis = rowAxis(sum))
      add(sum, *axis);
  });
  while (!waiting.empty()) {
    Value value = waiting.pop_back_val();
    follow(value, rows.lookup(value));
  }
  findReads();
  changeTypes();
  for (auto [use, axis] : gathered)
    gatherFor(*use, axis);
  for (auto [use, axis] : picked) {
    builder.setInsertionPoint(use->getOwner());
    GradientBuilder b(builder, use->getOwner()->getLoc());
    use->set(pick(b, use->get(), axis));
  }
  for (OpOperand *use : alike) {
    builder.setInsertionPoint(use->getOwner());
    use->set(ToRanksOp::create(builder, use->getOwner()->getLoc(), use->get()));
  }
  const bool isSplit = !rows.empty();
  for (auto [value, axis] : llvm::to_vector(rows))
    if (Operation *op = value.getDefiningOp()) {
      if (auto dropout = dyn_cast<DropoutOp>(op))
        setStep(dropout);
      else if (auto sum = dyn_cast<AllReduceOp>(op))
        scatter(sum, axis);
    }
  return isSplit;
}

struct ShardRows : impl::ShardRowsBase<ShardRows> {
  void runOnOperation() override {
    const int64_t ranks = getNumRanks(getOperation(), Group::Ranks);
    SmallVector<func::FuncOp> whole;
    bool isSplit = false;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (RowSharding(function, ranks).run())
        isSplit = true;
      else
        whole.push_back(function);
    if (!isSplit) {
      getOperation().emitError()
          << "--sequence-parallel: no rows can be split; expected an entry with a fixed number of them that " << ranks
          << " ranks divide, got none";
      return signalPassFailure();
    }
    for (func::FuncOp function : whole)
      function.emitRemark() << "entry " << function.getName() << " is not sequence parallel: " << ranks
                            << " ranks divide no fixed dimension of its rows";
  }
};

} // namespace
} // namespace mlir::kiln
