// SPDX-License-Identifier: Apache-2.0
//
// 1. Each linear layer is tried as one by inputs: its operand is to be split along the last axis, hence what that is
//    computed from, and what else is computed from that, in all entries, since a weight or a state is split in one way.
//    Back from there each way has to end at linear layers split by outputs. Otherwise nothing of all that is split.
// 2. A table of many rows is split by rows: each rank looks up those that it has, and computes the logits that they
// give.
// 3. Types are changed where they stand, and sums added behind the layers by inputs, before their biases.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_SHARD
#include "compiler/transforms/Passes.h.inc"

namespace {

RankedTensorType tensorTypeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
unsigned lastAxis(Value value) { return tensorTypeOf(value).getRank() - 1; }

/// A value of which each rank has an even share of each section of an axis.
struct Split {
  unsigned axis = 0;
  SmallVector<int64_t, 3> sections; // fixed extents, which add up to the axis

  bool operator==(const Split &) const = default;
};

/// The axis of `to` that an axis of `from`, the same elements in another shape, is when each is cut into equal parts.
std::optional<unsigned> reshapedAxis(ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to, unsigned axis,
                                     MLIRContext *context) {
  auto firstOfMany = [](ArrayRef<AffineExpr> extents, unsigned begin, unsigned end) {
    while (begin < end && isConstant(extents[begin], 1))
      ++begin;
    return begin;
  };
  unsigned i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    // The least number of axes that hold the same elements on both sides.
    unsigned iEnd = 0, jEnd = 0;
    for (unsigned together = 2; iEnd == 0 && together <= from.size() - i + to.size() - j; ++together)
      for (unsigned own = 1; own < together && iEnd == 0; ++own)
        if (const unsigned other = together - own;
            i + own <= from.size() && j + other <= to.size() &&
            getProduct(from.slice(i, own), context) == getProduct(to.slice(j, other), context)) {
          iEnd = i + own;
          jEnd = j + other;
        }
    if (iEnd == 0)
      return std::nullopt;
    if (axis < iEnd) {
      const unsigned found = firstOfMany(to, j, jEnd);
      return axis >= i && axis == firstOfMany(from, i, iEnd) && found < jEnd ? std::optional(found) : std::nullopt;
    }
    i = iEnd;
    j = jEnd;
  }
  return std::nullopt;
}

class Sharding {
public:
  Sharding(ModuleOp module, int64_t ranks) : module(module), ranks(ranks), context(module.getContext()) {
    module.walk([&](Operation *op) {
      if (auto parameter = dyn_cast<ParameterOp>(op))
        for (StringRef source : parameter.getSources().getAsValueRange<StringAttr>())
          uses[source].push_back(op);
      else if (isa<StateOp, AppendOp, StoreOp>(op))
        uses[op->getAttrOfType<StringAttr>("name").getValue()].push_back(op);
    });
  }

  LogicalResult run();

private:
  /// Splits what the layer is given, and all that follows from it; false: that cannot be, and nothing is changed.
  bool trySplit(LinearOp byInputs);
  /// Notes that a value is to be split; false if it cannot be, or is in another way.
  bool add(Value value, const Split &split);
  bool addWhole(Value value, unsigned axis);
  /// Notes the values beside `known` that are split since that is.
  bool propagate(Operation *op, Value known, const Split &split);
  bool propagateLinear(LinearOp linear, Value known, const Split &split);
  bool addSections(Value joint, unsigned axis);
  bool propagateSlice(SliceOp slice, Value known, const Split &split);
  bool propagatePointwise(Operation *op, Value known, const Split &split);
  bool propagateAttention(AttentionOp attention, const Split &split);
  bool propagateState(Operation *op, const Split &split);
  /// Between two values of the same elements or of the same axis elsewhere.
  bool propagateAxes(Value one, Value other, Value known, const Split &split,
                     function_ref<std::optional<unsigned>(unsigned)> toOther,
                     function_ref<std::optional<unsigned>(unsigned)> toOne);
  bool isWhole(const Split &split) const { return split.sections.size() == 1; }
  bool isSplit(Value value) const { return splits.contains(value); }
  /// Splits a weight that is a vocabulary's, of more rows than columns by far, in all its uses.
  void trySplitTable(StringRef name);
  bool isTableUse(OpOperand &use) const;
  /// That each linear is split along one side.
  bool isConsistent(ArrayRef<Value> added) const;

  void apply();
  void markWhole();
  void applyTable(StringRef name, SmallVectorImpl<NamedAttribute> &shards);
  void changeLookup(EmbeddingOp embedding, int64_t rows);
  void changeLogits(LinearOp linear);
  void changeOp(Operation *op);
  RankedTensorType partOf(RankedTensorType type, const Split &split) const;

  ModuleOp module;
  int64_t ranks;
  MLIRContext *context;
  llvm::StringMap<SmallVector<Operation *>> uses; // of a weight or a state, by name
  llvm::MapVector<Value, Split> splits;
  SmallVector<Value> waiting; // whose ops are to be looked at
  SmallVector<StringRef> tables;
};

bool Sharding::add(Value value, const Split &split) {
  if (auto known = splits.find(value); known != splits.end())
    return known->second == split;
  if (llvm::any_of(split.sections, [&](int64_t extent) { return extent % ranks != 0; }))
    return false;
  splits.insert({value, split});
  waiting.push_back(value);
  return true;
}

bool Sharding::addWhole(Value value, unsigned axis) {
  auto extent = dyn_cast<AffineConstantExpr>(getExtents(tensorTypeOf(value))[axis]);
  return extent && add(value, {axis, {extent.getValue()}});
}

bool Sharding::propagateAxes(Value one, Value other, Value known, const Split &split,
                             function_ref<std::optional<unsigned>(unsigned)> toOther,
                             function_ref<std::optional<unsigned>(unsigned)> toOne) {
  std::optional<unsigned> axis = known == one ? toOther(split.axis) : toOne(split.axis);
  if (!axis)
    return false;
  Value next = known == one ? other : one;
  const bool isSame = getExtents(tensorTypeOf(next))[*axis] == getExtents(tensorTypeOf(known))[split.axis];
  return isSame ? add(next, {*axis, split.sections}) : isWhole(split) && addWhole(next, *axis);
}

bool Sharding::propagateLinear(LinearOp linear, Value known, const Split &split) {
  auto weight = linear.getWeight().getDefiningOp<ParameterOp>();
  auto bias = linear.getBias() ? linear.getBias().getDefiningOp<ParameterOp>() : ParameterOp();
  if (!weight || (linear.getBias() && !bias) || linear.getScales())
    return false;
  const unsigned outputs = linear.getOutputDim(), inputs = 1 - outputs;
  const bool byInputs = known == linear.getX() || (known == linear.getWeight() && split.axis == inputs);
  if (byInputs)
    return (known != linear.getX() || split.axis == lastAxis(known)) &&
           add(linear.getWeight(), {inputs, split.sections}) &&
           add(linear.getX(), {lastAxis(linear.getX()), split.sections});
  if (known == linear.getResult() && split.axis != lastAxis(known))
    return false;
  return add(linear.getWeight(), {outputs, split.sections}) && (!bias || add(linear.getBias(), {0, split.sections})) &&
         add(linear.getResult(), {lastAxis(linear.getResult()), split.sections});
}

/// The range of an axis that the op takes of its first operand; nothing if it takes no fixed one.
std::optional<std::pair<int64_t, int64_t>> rangeOf(Operation *op, unsigned axis) {
  auto slice = dyn_cast<SliceOp>(op);
  auto append = dyn_cast<AppendOp>(op);
  const bool isAlong = slice ? slice.getAxis() == axis && !slice.getAtEnd() : append && axis == lastAxis(append.getX());
  auto extent =
      isAlong ? dyn_cast<AffineConstantExpr>(getExtents(tensorTypeOf(op->getResult(0)))[axis]) : AffineConstantExpr();
  if (!extent)
    return std::nullopt;
  return std::pair(static_cast<int64_t>(slice ? slice.getStart() : append.getColumn()), extent.getValue());
}

/// Of ops that take ranges of the axis each is a section, and together they are all of it.
bool Sharding::addSections(Value joint, unsigned axis) {
  Split split{axis, {}};
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (Operation *user : joint.getUsers()) {
    auto range = rangeOf(user, axis);
    if (!range)
      return false;
    ranges.push_back(*range);
  }
  llvm::sort(ranges);
  ranges.erase(llvm::unique(ranges), ranges.end());
  int64_t end = 0;
  for (auto [start, extent] : ranges) {
    if (start != end)
      return false;
    split.sections.push_back(extent);
    end += extent;
  }
  // The run time knows slices that begin at a multiple of what they are long.
  return llvm::all_equal(split.sections) && isConstant(getExtents(tensorTypeOf(joint))[axis], end) &&
         add(joint, split) &&
         llvm::all_of(joint.getUsers(), [&](Operation *user) { return addWhole(user->getResult(0), axis); });
}

bool Sharding::propagateSlice(SliceOp slice, Value known, const Split &split) {
  if (split.axis == slice.getAxis())
    return addSections(slice.getX(), split.axis);
  return add(known == slice.getX() ? slice.getResult() : slice.getX(), split);
}

/// Operands that are broadcast along the axis stay whole.
bool Sharding::propagatePointwise(Operation *op, Value known, const Split &split) {
  Value result = op->getResult(0);
  const unsigned behind = lastAxis(known) - split.axis; // counted from the last axis
  for (Value value : llvm::concat<Value>(SmallVector<Value>{result}, llvm::to_vector(op->getOperands()))) {
    if (tensorTypeOf(value).getRank() <= static_cast<int64_t>(behind))
      continue;
    const unsigned axis = lastAxis(value) - behind;
    AffineExpr extent = getExtents(tensorTypeOf(value))[axis];
    if (extent == getExtents(tensorTypeOf(known))[split.axis]) {
      if (!add(value, {axis, split.sections}))
        return false;
    } else if (!isConstant(extent, 1) || value == result) {
      return false;
    }
  }
  return true;
}

bool Sharding::propagateAttention(AttentionOp attention, const Split &split) {
  if (attention.getHeads() % ranks != 0 || attention.getNumKeyValueHeads() % ranks != 0)
    return false;
  if (Value mask = attention.getMask(); mask &&
                                        tensorTypeOf(mask).getRank() > tensorTypeOf(attention.getQuery()).getRank() &&
                                        !isConstant(getExtents(tensorTypeOf(mask)).end()[-3], 1))
    return false;
  Value values[] = {attention.getQuery(), attention.getKey(), attention.getValue(), attention.getResult()};
  return isWhole(split) && llvm::all_of(values, [&](Value value) { return addWhole(value, lastAxis(value)); });
}

/// All that reads and writes the state.
bool Sharding::propagateState(Operation *op, const Split &split) {
  if (split.axis == 0)
    return false;
  for (Operation *use : uses.lookup(op->getAttrOfType<StringAttr>("name").getValue())) {
    auto append = dyn_cast<AppendOp>(use);
    const bool isOfJoint = append && append.getX().getType().getDimSize(lastAxis(append.getX())) !=
                                         append.getType().getDimSize(lastAxis(append));
    if (isOfJoint && !(split.axis == lastAxis(append) && addSections(append.getX(), split.axis)))
      return false;
    for (Value value : isOfJoint ? SmallVector<Value>(use->getResults())
                                 : llvm::to_vector(llvm::concat<Value>(llvm::to_vector(use->getOperands()),
                                                                       llvm::to_vector(use->getResults()))))
      if (!addWhole(value, split.axis))
        return false;
  }
  return true;
}

bool Sharding::propagate(Operation *op, Value known, const Split &split) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return propagateLinear(linear, known, split);
  if (auto slice = dyn_cast<SliceOp>(op))
    return propagateSlice(slice, known, split);
  if (auto attention = dyn_cast<AttentionOp>(op))
    return split.axis == lastAxis(known) && known != attention.getMask() && known != attention.getLengths() &&
           propagateAttention(attention, split);
  if (isa<StateOp, AppendOp, StoreOp>(op))
    return propagateState(op, split);
  if (auto parameter = dyn_cast<ParameterOp>(op)) {
    StorageAttr storage = parameter.getStorageAttr();
    if (parameter.getSources().size() > 1 || (storage && storage.isGrouped() && split.axis != storage.getDim() &&
                                              split.sections.front() / ranks % storage.getGroup() != 0))
      return false;
    StringRef name = cast<StringAttr>(parameter.getSources()[0]).getValue();
    return llvm::all_of(uses.lookup(name), [&](Operation *use) { return add(use->getResult(0), split); });
  }
  if (auto constant = dyn_cast<ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (auto view = dyn_cast<ReshapeOp>(op)) {
    const SmallVector<AffineExpr> from = getExtents(tensorTypeOf(view.getX())), to = getExtents(tensorTypeOf(view));
    return propagateAxes(
        view.getX(), view, known, split, [&](unsigned axis) { return reshapedAxis(from, to, axis, context); },
        [&](unsigned axis) { return reshapedAxis(to, from, axis, context); });
  }
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    return propagateAxes(
        transpose.getX(), transpose, known, split,
        [&](unsigned axis) -> std::optional<unsigned> { return llvm::find(permutation, axis) - permutation.begin(); },
        [&](unsigned axis) -> std::optional<unsigned> { return permutation[axis]; });
  }
  if (auto concat = dyn_cast<ConcatOp>(op))
    return split.axis != concat.getAxis() && add(concat.getResult(), split) &&
           llvm::all_of(concat.getInputs(), [&](Value input) { return add(input, split); });
  if (isa<LayerNormOp, RmsNormOp>(op)) // heads that are normalised each by itself
    return (known == op->getOperand(0) || known == op->getResult(0)) && split.axis != lastAxis(known) &&
           add(op->getOperand(0), split) && add(op->getResult(0), split);
  if (isa<QuantizeRowsOp, DropoutOp>(op))
    return false;
  return hasRole(op, KernelRole::Pointwise) && propagatePointwise(op, known, split);
}

bool Sharding::isConsistent(ArrayRef<Value> added) const {
  bool isByOutputs = false;
  for (Value value : added)
    for (Operation *user : value.getUsers())
      if (auto linear = dyn_cast<LinearOp>(user)) {
        if (isSplit(linear.getX()) && (isSplit(linear.getResult()) || (linear.getBias() && isSplit(linear.getBias()))))
          return false;
        isByOutputs |= isSplit(linear.getResult());
      }
  return isByOutputs;
}

bool Sharding::trySplit(LinearOp byInputs) {
  if (isSplit(byInputs.getX()))
    return true;
  const size_t before = splits.size();
  bool isRight = addWhole(byInputs.getX(), lastAxis(byInputs.getX()));
  while (isRight && !waiting.empty()) {
    Value value = waiting.pop_back_val();
    const Split split = splits.lookup(value);
    Operation *source = value.getDefiningOp();
    isRight = source && propagate(source, value, split) && llvm::all_of(value.getUsers(), [&](Operation *user) {
                return user->getBlock() == value.getParentBlock() && propagate(user, value, split);
              });
  }
  waiting.clear();
  SmallVector<Value> added;
  for (const auto &each : ArrayRef(splits.begin(), splits.end()).drop_front(before))
    added.push_back(each.first);
  if (isRight && isConsistent(added))
    return true;
  while (splits.size() > before)
    splits.pop_back();
  return false;
}

bool Sharding::isTableUse(OpOperand &use) const {
  if (isa<EmbeddingOp>(use.getOwner()))
    return use.getOperandNumber() == 1;
  auto linear = dyn_cast<LinearOp>(use.getOwner());
  return linear && &use == &linear.getWeightMutable() && linear.getOutputDim() == 0 && !linear.getBias() &&
         !linear.getScales() && !isSplit(linear.getX()) && !isSplit(linear.getResult());
}

void Sharding::trySplitTable(StringRef name) {
  constexpr int64_t rowsByColumns = 4; // fewer, and their sums take longer than they do
  const bool isTable = llvm::all_of(uses.lookup(name), [&](Operation *op) {
    auto parameter = dyn_cast<ParameterOp>(op);
    if (!parameter || parameter.getSources().size() > 1 || isSplit(parameter))
      return false;
    ArrayRef<int64_t> shape = tensorTypeOf(parameter).getShape();
    return shape.size() == 2 && shape[0] % ranks == 0 && shape[0] >= rowsByColumns * shape[1] &&
           llvm::all_of(parameter->getUses(), [&](OpOperand &use) { return isTableUse(use); });
  });
  if (isTable)
    tables.push_back(name);
}

RankedTensorType Sharding::partOf(RankedTensorType type, const Split &split) const {
  SmallVector<AffineExpr> extents = getExtents(type);
  extents[split.axis] = getAffineConstantExpr(type.getDimSize(split.axis) / ranks, context);
  return getTensorType(extents, type.getElementType(), getNumSymbols(type));
}

/// What beside types says how large things are.
void Sharding::changeOp(Operation *op) {
  Builder builder(context);
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    const int64_t shared = attention.getNumKeyValueHeads();
    if (attention.getKeyValueHeads())
      attention.setKeyValueHeads(shared / ranks);
    attention.setHeads(attention.getHeads() / ranks);
  } else if (auto slice = dyn_cast<SliceOp>(op); slice && splits.lookup(slice).axis == slice.getAxis()) {
    slice.setStart(slice.getStart() / ranks);
  } else if (auto append = dyn_cast<AppendOp>(op)) {
    append.setColumn(append.getColumn() / ranks);
  } else if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    constant.setValueAttr(splat.resizeSplat(tensorTypeOf(constant)));
  }
}

/// The bias is added once, behind the sum.
void addSum(LinearOp linear) {
  OpBuilder builder(linear);
  builder.setInsertionPointAfter(linear);
  Value bias = linear.getBias();
  linear.getBiasMutable().clear();
  auto sum = AllReduceOp::create(builder, linear.getLoc(), linear.getResult());
  Value result = sum;
  if (bias)
    result = AddOp::create(builder, linear.getLoc(), sum, bias);
  linear.getResult().replaceAllUsesExcept(result, sum);
}

/// Rows that another rank has are zeros, and the sum over all ranks is the row.
void Sharding::changeLookup(EmbeddingOp embedding, int64_t rows) {
  OpBuilder builder(embedding);
  const Location loc = embedding.getLoc();
  auto number = [&](auto value, Type element) {
    auto type = RankedTensorType::get({}, element);
    return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, value)).getResult();
  };
  Value count = number(static_cast<int32_t>(rows), builder.getI32Type());
  Value rank = RankOp::create(builder, loc, RankedTensorType::get({}, builder.getI32Type()));
  Value own = SubOp::create(builder, loc, embedding.getIndices(), MulOp::create(builder, loc, rank, count));
  Value isBehind = LessEqualOp::create(builder, loc, number(int32_t{0}, builder.getI32Type()), own);
  Value isOwn = LogicalAndOp::create(builder, loc, isBehind, LessOp::create(builder, loc, own, count));
  embedding.getIndicesMutable().assign(own);

  builder.setInsertionPointAfter(embedding);
  RankedTensorType type = tensorTypeOf(embedding);
  SmallVector<AffineExpr> extents = getExtents(type);
  extents.back() = getAffineConstantExpr(1, context);
  Value isRow =
      ReshapeOp::create(builder, loc, getTensorType(extents, builder.getI1Type(), getNumSymbols(type)), isOwn);
  APFloat zero(cast<FloatType>(type.getElementType()).getFloatSemantics());
  Value part = WhereOp::create(builder, loc, isRow, embedding, number(zero, type.getElementType()));
  Value sum = AllReduceOp::create(builder, loc, part);
  embedding.getResult().replaceAllUsesExcept(sum, part.getDefiningOp());
}

/// Each rank's logits, one behind another in each row.
void Sharding::changeLogits(LinearOp linear) {
  OpBuilder builder(context);
  builder.setInsertionPointAfter(linear);
  const RankedTensorType whole = tensorTypeOf(linear);
  const unsigned last = lastAxis(linear);
  linear.getResult().setType(partOf(whole, {last, {}}));
  SmallVector<AffineExpr> extents = getExtents(tensorTypeOf(linear));
  extents.insert(extents.begin(), getAffineConstantExpr(ranks, context));
  SmallVector<int64_t> permutation(last + 2, 0); // behind the rows' axes, before the last one
  for (unsigned axis = 0; axis < last; ++axis)
    permutation[axis] = axis + 1;
  permutation.back() = last + 1;
  auto parts = AllGatherOp::create(builder, linear.getLoc(),
                                   getTensorType(extents, whole.getElementType(), getNumSymbols(whole)), linear);
  Value rows = TransposeOp::create(builder, linear.getLoc(), parts, permutation);
  Value logits = ReshapeOp::create(builder, linear.getLoc(), whole, rows);
  linear.getResult().replaceAllUsesExcept(logits, parts);
}

void Sharding::applyTable(StringRef name, SmallVectorImpl<NamedAttribute> &shards) {
  for (Operation *parameter : uses.lookup(name)) {
    Value table = parameter->getResult(0);
    const int64_t rows = tensorTypeOf(table).getDimSize(0);
    if (parameter == uses.lookup(name).front())
      shards.emplace_back(StringAttr::get(context, name), ShardAttr::get(context, 0, rows));
    table.setType(partOf(tensorTypeOf(table), {0, {}}));
    for (Operation *user : llvm::to_vector(table.getUsers()))
      if (auto embedding = dyn_cast<EmbeddingOp>(user))
        changeLookup(embedding, rows / ranks);
      else
        changeLogits(cast<LinearOp>(user));
  }
}

/// What all ranks have alike and ops of a rank's own read: gradients come back in parts.
void Sharding::markWhole() {
  llvm::SmallSetVector<OpOperand *, 32> reads;
  auto isRanks = [&](Operation *op) {
    return llvm::any_of(op->getResults(), [&](Value result) { return isSplit(result); }) ||
           (isa<LinearOp>(op) && isSplit(op->getOperand(1)));
  };
  module.walk([&](Operation *op) {
    if (op->getNumRegions() > 0 || isa<ParameterOp, ConstantOp>(op) || !isRanks(op))
      return;
    for (OpOperand &operand : op->getOpOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.get().getType());
          type && isa<FloatType>(type.getElementType()) && !isSplit(operand.get()) &&
          !operand.get().getDefiningOp<ConstantOp>() && !(isa<LinearOp>(op) && operand.getOperandNumber() == 2))
        reads.insert(&operand);
  });
  for (StringRef table : tables)
    for (Operation *parameter : uses.lookup(table))
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

void Sharding::apply() {
  markWhole();
  SmallVector<NamedAttribute> shards;
  llvm::SmallSetVector<Operation *, 32> ops;
  SmallVector<LinearOp> byInputs;
  for (auto &[value, split] : splits) {
    if (auto parameter = value.getDefiningOp<ParameterOp>())
      shards.emplace_back(cast<StringAttr>(parameter.getSources()[0]),
                          ShardAttr::get(context, split.axis, split.sections));
    ops.insert(value.getDefiningOp());
    for (Operation *user : value.getUsers())
      if (auto linear = dyn_cast<LinearOp>(user); linear && linear.getX() == value)
        byInputs.push_back(linear);
  }
  for (auto &[value, split] : splits)
    value.setType(partOf(tensorTypeOf(value), split));
  for (Operation *op : ops)
    changeOp(op);
  for (LinearOp linear : byInputs)
    addSum(linear);
  for (StringRef table : tables)
    applyTable(table, shards);
  llvm::sort(shards);
  shards.erase(llvm::unique(shards), shards.end());
  module->setAttr(shardsAttrName, DictionaryAttr::get(context, shards));
}

LogicalResult Sharding::run() {
  module->setAttr(ranksAttrName, IntegerAttr::get(IntegerType::get(context, 64), ranks));
  SmallVector<LinearOp> linears;
  module.walk([&](LinearOp linear) { linears.push_back(linear); });
  for (LinearOp linear : linears)
    trySplit(linear);
  SmallVector<StringRef> names = llvm::to_vector(uses.keys());
  llvm::sort(names);
  for (StringRef name : names)
    trySplitTable(name);
  if (splits.empty())
    return module.emitError() << "ranks require layers that can be split among " << ranks
                              << " of them: two linear layers with an extent between them that it divides, or heads";
  apply();
  return success();
}

struct Shard : impl::ShardBase<Shard> {
  using ShardBase::ShardBase;

  void runOnOperation() override {
    if (failed(Sharding(getOperation(), ranks).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace mlir::kiln
