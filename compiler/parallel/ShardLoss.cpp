// SPDX-License-Identifier: Apache-2.0
#include "compiler/parallel/ShardLoss.h"

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/IR/Matchers.h"

namespace mlir::kiln {

static Value createInteger(OpBuilder &builder, Location loc, int64_t value) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, static_cast<int32_t>(value)));
}

VocabularyShare::VocabularyShare(OpBuilder &builder, Location loc, int64_t vocabulary, int64_t ranks) {
  auto integer = [&](int64_t value) { return createInteger(builder, loc, value); };
  const int64_t rows = rowsOf(vocabulary, ranks), tooMany = rows * ranks - vocabulary;
  Value rank = RankOp::create(builder, loc, RankedTensorType::get({}, builder.getI32Type()));
  first = MulOp::create(builder, loc, rank, integer(rows));
  if (tooMany == 0)
    return;
  Value isLast = EqualOp::create(builder, loc, rank, integer(ranks - 1));
  skipped = WhereOp::create(builder, loc, isLast, integer(tooMany), integer(0));
  first = SubOp::create(builder, loc, first, skipped);
}

Value VocabularyShare::indicesOf(OpBuilder &builder, Location loc, Value indices) const {
  return SubOp::create(builder, loc, indices, first);
}

Value VocabularyShare::areOwn(OpBuilder &builder, Location loc, Value rows) const {
  return skipped ? LessEqualOp::create(builder, loc, skipped, rows).getResult() : Value();
}

bool ShardLoss::isScalarConstant(Value value) const {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant && constant.getType().getNumElements() == 1;
}

bool ShardLoss::find(LinearOp logits) {
  vocabulary = rankedType(logits).getShape().back();
  columns.push_back(logits);
  for (size_t i = 0; i < columns.size(); ++i) // grows during iteration
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

/// Whether the class numbers are only compared with targets or reduced to the last class.
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

/// With c = x - the maximum over all ranks, and s the logarithm of the sum of e^c over all ranks, the log-likelihoods
/// are c - s. The maximum does not contribute to the gradient.
void ShardLoss::splitLikelihoods(Likelihoods &likely, int64_t ranks) {
  OpBuilder builder(likely.all);
  GradientBuilder b(builder, likely.all.getLoc());
  const Type element = likely.all.getType().getElementType();
  const Location loc = likely.all.getLoc();
  const VocabularyShare share(builder, loc, vocabulary, ranks);
  Value x = as(b, builder.getF32Type(), likely.all.getX());
  Value areOwn = share.areOwn(builder, loc, b.create<PositionsOp>(x, axis()));
  if (areOwn)
    x = b.where(areOwn, x, b.number(x, -std::numeric_limits<double>::infinity()));
  Value own = b.create<StopGradientOp>(b.create<MaxOp>(x, axis()));
  SmallVector<AffineExpr> extents = getExtents(rankedType(own));
  extents.insert(extents.begin(), builder.getAffineConstantExpr(ranks));
  Value largest = b.create<MaxOp>(b.createAs<AllGatherOp>(b.typeOf(extents, own), own), 0);
  Value centred = b.sub(x, b.keepAxis(largest, x, axis()));
  Value logSum = b.create<LogOp>(addRanks(b, b.create<ExpOp>(centred)));
  for (Operation *op : likely.means) {
    const auto count = static_cast<double>(vocabulary);
    Value sum = addRanks(b, areOwn ? b.where(areOwn, centred, b.number(centred, 0)) : centred);
    Value result = isa<MeanOp>(op) ? b.sub(b.scale(sum, 1 / count), logSum) : b.sub(sum, b.scale(logSum, count));
    op->getResult(0).replaceAllUsesWith(as(b, element, result));
    op->erase();
  }
  for (Pick &pick : likely.picks) {
    builder.setInsertionPoint(pick.sum);
    pick.sum.replaceAllUsesWith(as(b, element, splitPick(builder, pick, share, centred, logSum)));
    for (Operation *op : {pick.sum.getOperation(), pick.where.getOperation(), pick.equal.getOperation()})
      op->erase();
  }
  likely.all.erase();
}

/// One rank has the target, all others add zeros. A target that is not a class has the likelihood 0, as before.
Value ShardLoss::splitPick(OpBuilder &builder, Pick &pick, const VocabularyShare &share, Value centred, Value logSum) {
  const Location loc = pick.sum.getLoc();
  GradientBuilder b(builder, loc);
  Value own = share.indicesOf(builder, loc, pick.target);
  Value isOwn = b.create<EqualOp>(own, b.create<PositionsOp>(centred, axis()));
  if (Value areOwn = share.areOwn(builder, loc, own))
    isOwn = b.create<LogicalAndOp>(areOwn, isOwn);
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
    extents.back() = getAffineConstantExpr(VocabularyShare::rowsOf(vocabulary, ranks), type.getContext());
    value.setType(getTensorType(extents, type.getElementType(), getNumSymbols(type)));
  }
  for (Likelihoods &likely : likelihoods)
    splitLikelihoods(likely, ranks);
  for (PositionsOp classes : positions)
    splitClasses(classes);
}

} // namespace mlir::kiln
