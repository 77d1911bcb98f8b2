// SPDX-License-Identifier: Apache-2.0
//
// Applies the splits that ShardSplits found: changes types in place, and adds an all-reduce after each row-parallel
// linear layer, before its bias.
//
// With `parts`, only splits that this number of ranks would also support are used, regardless of the actual number, and
// all-reduces are added even for a single rank.
#include "compiler/parallel/Passes.h"

#include "compiler/parallel/ShardLoss.h"
#include "compiler/parallel/ShardParts.h"
#include "compiler/parallel/ShardSplits.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_SHARD
#include "compiler/parallel/Passes.h.inc"

namespace {

class Sharding {
public:
  Sharding(ModuleOp module, int64_t ranks, int64_t parts, bool sumsHalf)
      : found(module, std::max(ranks, parts), parts > 0), module(module), ranks(ranks), parts(parts),
        sumsHalf(sumsHalf), context(module.getContext()) {}

  LogicalResult run();

private:
  void markWhole();
  void changeOp(Operation *op);
  void changeAttention(AttentionOp attention);
  bool isShared(OpOperand &operand) const;
  void shareOut(Operation *op);
  Value pickHead(OpBuilder &builder, Location loc, Value all, int64_t heads);
  Value addUp(OpBuilder &builder, Value part, Value bias = {}) const;
  void addSum(LinearOp linear);
  void splitTable(StringRef name, SmallVectorImpl<NamedAttribute> &shards);
  void changeLookup(EmbeddingOp embedding, int64_t vocabulary);
  void changeLogits(LinearOp linear);
  RankedTensorType partOf(RankedTensorType type, unsigned axis, int64_t group = 1) const;
  /// Returns the group size in actual ranks, not in parts of sums.
  int64_t groupOf(const Split &split) const {
    return std::max<int64_t>(split.group * ranks / std::max(ranks, parts), 1);
  }
  RankedTensorType typeOf(ArrayRef<AffineExpr> extents, Value like) const {
    return getTensorType(extents, tensorTypeOf(like).getElementType(), getNumSymbols(like.getType()));
  }

  const ShardSplits found;
  ModuleOp module;
  const int64_t ranks, parts;
  const bool sumsHalf;
  MLIRContext *context;
};

RankedTensorType Sharding::partOf(RankedTensorType type, unsigned axis, int64_t group) const {
  SmallVector<AffineExpr> extents = getExtents(type);
  extents[axis] = getAffineConstantExpr(llvm::divideCeil(type.getDimSize(axis), ranks / group), context);
  return getTensorType(extents, type.getElementType(), getNumSymbols(type));
}

/// Selects the rank's key or value head from [..., heads times width], of which the rank has all heads.
Value Sharding::pickHead(OpBuilder &builder, Location loc, Value all, int64_t heads) {
  SmallVector<AffineExpr> extents = getExtents(tensorTypeOf(all));
  const int64_t width = tensorTypeOf(all).getShape().back() / heads, axis = tensorTypeOf(all).getRank() - 1;
  extents.back() = getAffineConstantExpr(heads, context);
  extents.push_back(getAffineConstantExpr(width, context));
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  const auto group = static_cast<int32_t>(ranks / heads);
  Value rank = RankOp::create(builder, loc, scalar);
  Value head =
      DivOp::create(builder, loc, rank, ConstantOp::create(builder, loc, DenseElementsAttr::get(scalar, group)));
  return GatherOp::create(builder, loc, ReshapeOp::create(builder, loc, typeOf(extents, all), all), head, axis);
}

void Sharding::changeAttention(AttentionOp attention) {
  const int64_t shared = attention.getNumKeyValueHeads();
  attention.setHeads(attention.getHeads() / ranks);
  if (isShared(attention.getKeyMutable()))
    return;
  OpBuilder builder(attention);
  if (!found.isSplit(attention.getKey()))
    for (OpOperand *all : {&attention.getKeyMutable(), &attention.getValueMutable()})
      all->set(pickHead(builder, attention.getLoc(), all->get(), shared));
  if (attention.getKeyValueHeads())
    attention.setKeyValueHeads(std::max<int64_t>(shared / ranks, 1));
}

/// Whether all ranks have the same operand and each rank reads only its own parts of it.
bool Sharding::isShared(OpOperand &operand) const {
  const unsigned number = operand.getOperandNumber();
  Operation *op = operand.getOwner();
  return found.hasOrder() && !found.isSplit(operand.get()) &&
         ((isa<AttentionOp>(op) && (number == 1 || number == 2)) || (isa<LayerNormOp, RmsNormOp>(op) && number > 0));
}

void Sharding::shareOut(Operation *op) {
  const RankParts all{ranks, parts / ranks};
  if (op->getNumOperands() < 2 || !isShared(op->getOpOperand(1)))
    return;
  if (auto attention = dyn_cast<AttentionOp>(op))
    shareKeys(attention, all);
  else
    shareNorm(op, found.getSplits().lookup(op->getResult(0)).axis, all);
}

/// Changes attributes that depend on sizes.
void Sharding::changeOp(Operation *op) {
  Builder builder(context);
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    changeAttention(attention);
  } else if (auto slice = dyn_cast<SliceOp>(op); slice && found.getSplits().lookup(slice).axis == slice.getAxis()) {
    slice.setStart(slice.getStart() / ranks);
  } else if (auto append = dyn_cast<AppendOp>(op)) {
    append.setColumn(append.getColumn() / ranks);
  } else if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    constant.setValueAttr(splat.resizeSplat(tensorTypeOf(constant)));
  }
}

static SmallVector<OpOperand *> readsOf(Value value) {
  return llvm::map_to_vector(value.getUses(), [](OpOperand &use) { return &use; });
}

/// 16-bit floats are rounded after the bias, as in a single process. A partial sum is cast to f32 within its own kernel
/// without intermediate rounding, except in batch-invariant kernels.
Value Sharding::addUp(OpBuilder &builder, Value part, Value bias) const {
  const Location loc = part.getLoc();
  RankedTensorType type = tensorTypeOf(part);
  const bool isWidened = !sumsHalf && type.getElementType().getIntOrFloatBitWidth() < 32;
  auto widen = [&](Value value) -> Value {
    return isWidened ? CastOp::create(builder, loc, tensorTypeOf(value).clone(builder.getF32Type()), value) : value;
  };
  Value sum = AllReduceOp::create(builder, loc, widen(part));
  if (bias)
    sum = AddOp::create(builder, loc, sum, widen(bias));
  return isWidened ? CastOp::create(builder, loc, type, sum).getResult() : sum;
}

/// Adds the all-reduce of a row-parallel layer. The bias is added once, after the sum.
void Sharding::addSum(LinearOp linear) {
  OpBuilder builder(context);
  builder.setInsertionPointAfter(linear);
  Value bias = linear.getBias();
  linear.getBiasMutable().clear();
  const SmallVector<OpOperand *> reads = readsOf(linear);
  Value sum = addUp(builder, linear.getResult(), bias);
  for (OpOperand *read : reads)
    read->set(sum);
}

/// Looks up rows in the rank's share of the table. Rows of other ranks are zeros, so the all-reduce yields the row.
void Sharding::changeLookup(EmbeddingOp embedding, int64_t vocabulary) {
  OpBuilder builder(embedding);
  const Location loc = embedding.getLoc();
  auto number = [&](auto value, Type element) {
    auto type = RankedTensorType::get({}, element);
    return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, value)).getResult();
  };
  const Type i32 = builder.getI32Type();
  const VocabularyShare share(builder, loc, vocabulary, ranks);
  const auto rows = static_cast<int32_t>(VocabularyShare::rowsOf(vocabulary, ranks));
  Value own = share.indicesOf(builder, loc, embedding.getIndices());
  Value isAfter = share.areOwn(builder, loc, own);
  if (!isAfter)
    isAfter = LessEqualOp::create(builder, loc, number(int32_t{0}, i32), own);
  Value isBefore = LessOp::create(builder, loc, own, number(rows, i32));
  Value isOwn = LogicalAndOp::create(builder, loc, isAfter, isBefore);
  embedding.getIndicesMutable().assign(own);

  builder.setInsertionPointAfter(embedding);
  RankedTensorType type = tensorTypeOf(embedding);
  SmallVector<AffineExpr> extents = getExtents(type);
  extents.back() = getAffineConstantExpr(1, context);
  Value isRow =
      ReshapeOp::create(builder, loc, getTensorType(extents, builder.getI1Type(), getNumSymbols(type)), isOwn);
  APFloat zero(cast<FloatType>(type.getElementType()).getFloatSemantics());
  Value part = WhereOp::create(builder, loc, isRow, embedding, number(zero, type.getElementType()));
  Value sum = addUp(builder, part);
  embedding.getResult().replaceAllUsesExcept(sum, part.getDefiningOp());
}

/// Gathers the logits of all ranks, concatenated in each row. Logits that the last rank shares with the previous one
/// are dropped from the last rank's.
void Sharding::changeLogits(LinearOp linear) {
  OpBuilder builder(context);
  builder.setInsertionPointAfter(linear);
  const RankedTensorType whole = tensorTypeOf(linear);
  const unsigned last = whole.getRank() - 1;
  linear.getResult().setType(partOf(whole, last));
  SmallVector<AffineExpr> extents = getExtents(tensorTypeOf(linear));
  extents.insert(extents.begin(), getAffineConstantExpr(ranks, context));
  SmallVector<int64_t> permutation(last + 2, 0); // the ranks' axis goes after the rows' axes, before the last one
  for (unsigned axis = 0; axis < last; ++axis)
    permutation[axis] = axis + 1;
  permutation.back() = last + 1;
  auto parts = AllGatherOp::create(builder, linear.getLoc(),
                                   getTensorType(extents, whole.getElementType(), getNumSymbols(whole)), linear);
  Value rows = TransposeOp::create(builder, linear.getLoc(), parts, permutation);
  SmallVector<AffineExpr> joined = getExtents(whole);
  const int64_t share = tensorTypeOf(linear).getShape()[last], all = share * ranks, vocabulary = whole.getShape()[last];
  joined.back() = getAffineConstantExpr(all, context);
  Value logits = ReshapeOp::create(builder, linear.getLoc(), typeOf(joined, linear), rows);
  if (all > vocabulary) {
    auto slice = [&](int64_t first, int64_t count) {
      joined.back() = getAffineConstantExpr(count, context);
      return SliceOp::create(builder, linear.getLoc(), typeOf(joined, linear), logits, last, first, false).getResult();
    };
    const int64_t before = share * (ranks - 1);
    Value own[] = {slice(0, before), slice(before + all - vocabulary, vocabulary - before)};
    logits = ConcatOp::create(builder, linear.getLoc(), whole, own, last);
  }
  linear.getResult().replaceAllUsesExcept(logits, parts);
}

void Sharding::splitTable(StringRef name, SmallVectorImpl<NamedAttribute> &shards) {
  for (Operation *parameter : found.getUses(name)) {
    Value table = parameter->getResult(0);
    const int64_t rows = tensorTypeOf(table).getDimSize(0);
    if (parameter == found.getUses(name).front())
      shards.emplace_back(StringAttr::get(context, name), ShardAttr::get(context, 0, rows, 1));
    table.setType(partOf(tensorTypeOf(table), 0));
    for (Operation *user : llvm::to_vector(table.getUsers()))
      if (auto embedding = dyn_cast<EmbeddingOp>(user))
        changeLookup(embedding, rows);
      else if (ShardLoss loss; parts == 0 && loss.find(cast<LinearOp>(user)))
        loss.split(ranks);
      else
        changeLogits(cast<LinearOp>(user));
  }
}

/// Marks values that all ranks have but rank-specific ops read: their gradients are partial sums over ranks.
void Sharding::markWhole() {
  llvm::SmallSetVector<OpOperand *, 32> reads;
  auto isRanks = [&](Operation *op) {
    return llvm::any_of(op->getResults(), [&](Value result) { return found.isSplit(result); }) ||
           (isa<LinearOp>(op) && found.isSplit(op->getOperand(1)));
  };
  module.walk([&](Operation *op) {
    if (op->getNumRegions() > 0 || isa<ParameterOp, ConstantOp>(op) || !isRanks(op))
      return;
    for (OpOperand &operand : op->getOpOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.get().getType());
          type && isa<FloatType>(type.getElementType()) && !found.isSplit(operand.get()) &&
          !operand.get().getDefiningOp<ConstantOp>() && !(isa<LinearOp>(op) && operand.getOperandNumber() == 2) &&
          !isShared(operand))
        reads.insert(&operand);
  });
  for (StringRef table : found.getTables())
    for (Operation *parameter : found.getUses(table))
      for (OpOperand &use : parameter->getUses())
        if (auto linear = dyn_cast<LinearOp>(use.getOwner()))
          reads.insert(&linear.getXMutable());
  llvm::DenseMap<std::pair<Value, Block *>, Value> marked;
  for (OpOperand *read : reads) {
    Value &value = marked[{read->get(), read->getOwner()->getBlock()}];
    if (!value) {
      OpBuilder builder(read->getOwner());
      if (read->get().getParentBlock() == builder.getBlock())
        builder.setInsertionPointAfterValue(read->get());
      else
        builder.setInsertionPointToStart(builder.getBlock());
      value = ToRanksOp::create(builder, read->getOwner()->getLoc(), read->get());
    }
    read->set(value);
  }
}

LogicalResult Sharding::run() {
  const auto &splits = found.getSplits();
  if (splits.empty())
    return module.emitError()
           << "ranks: no layers can be split among " << std::max(ranks, parts)
           << " of them; expected heads, or two linear layers with a dimension between them that it divides";
  markWhole();
  SmallVector<NamedAttribute> shards;
  llvm::SmallSetVector<Operation *, 32> ops;
  for (const auto &[value, split] : splits) {
    if (auto parameter = value.getDefiningOp<ParameterOp>())
      shards.emplace_back(cast<StringAttr>(parameter.getSources()[0]),
                          ShardAttr::get(context, split.axis, split.sections, groupOf(split)));
    ops.insert(value.getDefiningOp());
  }
  SmallVector<LinearOp> summed = found.getSummed();
  for (LinearOp linear : summed)
    if (parts && linear.getWeight().getDefiningOp<ParameterOp>().getStorage())
      return linear.emitError() << "--reduction-parts: quantised weight; expected one that is stored as it is";
  if (ranks > 1) {
    for (auto [value, split] : splits)
      value.setType(partOf(tensorTypeOf(value), split.axis, groupOf(split)));
    for (Operation *op : ops)
      changeOp(op);
    for (StringRef table : found.getTables())
      splitTable(table, shards);
  }
  for (Operation *op : ops)
    shareOut(op);
  for (LinearOp linear : summed)
    addSum(linear);
  llvm::sort(shards);
  shards.erase(llvm::unique(shards), shards.end());
  auto setNumber = [&](StringRef name, int64_t value) {
    module->setAttr(name, IntegerAttr::get(IntegerType::get(context, 64), value));
  };
  if (ranks > 1)
    setNumber(ranksAttrName, ranks);
  if (parts)
    setNumber(reductionPartsAttrName, parts);
  module->setAttr(shardsAttrName, DictionaryAttr::get(context, shards));
  return success();
}

struct Shard : impl::ShardBase<Shard> {
  using ShardBase::ShardBase;

  void runOnOperation() override {
    if (failed(Sharding(getOperation(), ranks, parts, sumsHalf).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace mlir::kiln
