// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/ShardLoss.h"

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/IR/Matchers.h"

namespace mlir::kiln {

static Value createInteger(OpBuilder &builder, Location loc, int64_t value) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, static_cast<int32_t>(value)));
}

Value ownIndices(OpBuilder &builder, Location loc, Value indices, int64_t count) {
  Value rank = RankOp::create(builder, loc, RankedTensorType::get({}, builder.getI32Type()));
  Value first = MulOp::create(builder, loc, rank, createInteger(builder, loc, count));
  return SubOp::create(builder, loc, indices, first);
}

bool ShardLoss::isScalarConstant(Value value) const {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant && constant.getType().getNumElements() == 1;
}

bool ShardLoss::find(LinearOp logits) {
  vocabulary = rankedType(logits).getShape().back();
  columns.push_back(logits);
  for (size_t i = 0; i < columns.size(); ++i) // which grow
    if (!addReaders(columns[i]))
      return false;
  return !likelihoods.empty() && llvm::all_of(positions, [&](PositionsOp classes) { return areRead(classes); });
}

bool ShardLoss::addReaders(Value logits) {
  return llvm::all_of(logits.getUsers(), [&](Operation *user) {
    if (user->getBlock() != logits.getParentBlock())
      return false;
    if (auto classes = dyn_cast<PositionsOp>(user)) {
      positions.push_back(classes);
      return classes.getAxis() == axis();
    }
    if (auto likely = dyn_cast<LogSoftmaxOp>(user))
      return likely.getAxis() == axis() && addLikelihoods(likely);
    const bool isAlone = hasRole(user, KernelRole::Pointwise) && !isa<DropoutOp, QuantizeRowsOp>(user) &&
                         llvm::all_of(user->getOperands(),
                                      [&](Value operand) { return operand == logits || isScalarConstant(operand); });
    if (isAlone && !llvm::is_contained(columns, user->getResult(0)))
      columns.push_back(user->getResult(0));
    return isAlone;
  });
}

bool ShardLoss::addLikelihoods(LogSoftmaxOp likely) {
  Likelihoods found{likely, {}, {}};
  for (Operation *user : likely->getUsers()) {
    auto where = dyn_cast<WhereOp>(user);
    auto mean = dyn_cast<MeanOp>(user);
    auto sum = dyn_cast<SumOp>(user);
    if (user->getBlock() != likely->getBlock())
      return false;
    if ((mean && mean.getAxis() == axis()) || (sum && sum.getAxis() == axis()))
      found.means.push_back(user);
    else if (std::optional<Pick> pick = where ? pickOf(where) : std::nullopt)
      found.picks.push_back(*pick);
    else
      return false;
  }
  likelihoods.push_back(std::move(found));
  return true;
}

std::optional<ShardLoss::Pick> ShardLoss::pickOf(WhereOp where) const {
  auto equal = where.getCondition().getDefiningOp<EqualOp>();
  if (!equal || !where->hasOneUse() || !equal->hasOneUse() || !matchPattern(where.getRhs(), m_AnyZeroFloat()))
    return std::nullopt;
  auto sum = dyn_cast<SumOp>(*where->user_begin());
  auto classes = equal.getLhs().getDefiningOp<PositionsOp>();
  Value target = equal.getRhs();
  if (!classes) {
    classes = equal.getRhs().getDefiningOp<PositionsOp>();
    target = equal.getLhs();
  }
  RankedTensorType type = rankedType(target);
  const bool isOfRow = type.getRank() == rankedType(where).getRank() && type.getShape().back() == 1;
  if (!sum || sum.getAxis() != axis() || !classes || !isOfRow)
    return std::nullopt;
  return Pick{sum, where, equal, classes, target};
}

/// That classes are compared with targets, or the last one of them is asked for, alone.
bool ShardLoss::areRead(PositionsOp classes) const {
  return llvm::all_of(classes->getUsers(), [&](Operation *user) {
    return isa<MaxOp>(user) || llvm::any_of(likelihoods, [&](const Likelihoods &likely) {
             return llvm::any_of(likely.picks, [&](const Pick &pick) { return pick.equal == user; });
           });
  });
}

static Value as(GradientBuilder &b, Type element, Value x) {
  RankedTensorType type = rankedType(x);
  return type.getElementType() == element
             ? x
             : b.createAs<CastOp>(getTensorType(getExtents(type), element, getNumSymbols(type)), x);
}

Value ShardLoss::addRanks(GradientBuilder &b, Value x) const {
  return b.create<AllReduceOp>(b.create<SumOp>(x, axis()));
}

/// With c = x - the largest of all ranks, and s the logarithm of all ranks' sums of e^c, the likelihoods are c - s. The
/// largest has no part in the gradient.
void ShardLoss::splitLikelihoods(Likelihoods &likely, int64_t ranks) {
  OpBuilder builder(likely.all);
  GradientBuilder b(builder, likely.all.getLoc());
  const Type element = likely.all.getType().getElementType();
  Value x = as(b, builder.getF32Type(), likely.all.getX());
  Value own = b.create<StopGradientOp>(b.create<MaxOp>(x, axis()));
  SmallVector<AffineExpr> extents = getExtents(rankedType(own));
  extents.insert(extents.begin(), builder.getAffineConstantExpr(ranks));
  Value largest = b.create<MaxOp>(b.createAs<AllGatherOp>(b.typeOf(extents, own), own), 0);
  Value centred = b.sub(x, b.keepAxis(largest, x, axis()));
  Value logSum = b.create<LogOp>(addRanks(b, b.create<ExpOp>(centred)));
  for (Operation *op : likely.means) {
    const auto count = static_cast<double>(vocabulary);
    Value sum = addRanks(b, centred);
    Value result = isa<MeanOp>(op) ? b.sub(b.scale(sum, 1 / count), logSum) : b.sub(sum, b.scale(logSum, count));
    op->getResult(0).replaceAllUsesWith(as(b, element, result));
    op->erase();
  }
  for (Pick &pick : likely.picks) {
    builder.setInsertionPoint(pick.sum);
    pick.sum.replaceAllUsesWith(as(b, element, splitPick(builder, pick, centred, logSum, ranks)));
    for (Operation *op : {pick.sum.getOperation(), pick.where.getOperation(), pick.equal.getOperation()})
      op->erase();
  }
  likely.all.erase();
}

/// One rank has the target, all others add zeros. A target that is no class has the likelihood 0, as before.
Value ShardLoss::splitPick(OpBuilder &builder, Pick &pick, Value centred, Value logSum, int64_t ranks) {
  const Location loc = pick.sum.getLoc();
  GradientBuilder b(builder, loc);
  Value own = ownIndices(builder, loc, pick.target, vocabulary / ranks);
  Value isOwn = b.create<EqualOp>(own, b.create<PositionsOp>(centred, axis()));
  Value sum = addRanks(b, b.where(isOwn, centred, b.number(centred, 0)));
  Value target = b.reshape(pick.target, getExtents(rankedType(sum)));
  Value isClass = b.create<LogicalAndOp>(b.create<LessEqualOp>(createInteger(builder, loc, 0), target),
                                         b.create<LessOp>(target, createInteger(builder, loc, vocabulary)));
  return b.where(isClass, b.sub(sum, logSum), b.number(centred, 0));
}

void ShardLoss::splitClasses(PositionsOp classes) {
  OpBuilder builder(classes);
  for (Operation *last : llvm::make_early_inc_range(classes->getUsers())) {
    last->getResult(0).replaceAllUsesWith(createInteger(builder, classes.getLoc(), vocabulary - 1));
    last->erase();
  }
  classes.erase();
}

void ShardLoss::split(int64_t ranks) {
  for (Value value : columns) {
    RankedTensorType type = rankedType(value);
    SmallVector<AffineExpr> extents = getExtents(type);
    extents.back() = getAffineConstantExpr(vocabulary / ranks, type.getContext());
    value.setType(getTensorType(extents, type.getElementType(), getNumSymbols(type)));
  }
  for (Likelihoods &likely : likelihoods)
    splitLikelihoods(likely, ranks);
  for (PositionsOp classes : positions)
    splitClasses(classes);
}

} // namespace mlir::kiln
