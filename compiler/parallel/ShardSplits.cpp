// SPDX-License-Identifier: Apache-2.0
#include "compiler/parallel/ShardSplits.h"

#include "compiler/dialect/StoredParts.h"

namespace mlir::kiln {

static unsigned lastAxis(Value value) { return tensorTypeOf(value).getRank() - 1; }

/// Maps an axis through a reshape: returns the axis of `to` that is split when an axis of `from` is split evenly.
static std::optional<unsigned> reshapedAxis(ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to, unsigned axis,
                                            MLIRContext *context) {
  auto firstOfMany = [](ArrayRef<AffineExpr> extents, unsigned begin, unsigned end) {
    while (begin < end && isConstant(extents[begin], 1))
      ++begin;
    return begin;
  };
  unsigned i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    // The smallest numbers of axes that have the same number of elements on both sides.
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

ShardSplits::ShardSplits(ModuleOp module, int64_t ranks, bool hasParts) : ranks(ranks), hasParts(hasParts) {
  SmallVector<LinearOp> linears;
  SmallVector<StringRef> weights;
  module.walk([&](Operation *op) {
    if (auto linear = dyn_cast<LinearOp>(op))
      linears.push_back(linear);
    if (auto parameter = dyn_cast<ParameterOp>(op)) {
      isTrained |= parameter.getVariable();
      for (StringRef source : parameter.getSources().getAsValueRange<StringAttr>()) {
        if (uses[source].empty())
          weights.push_back(source);
        uses[source].push_back(op);
      }
    } else if (isa<StateOp, AppendOp, StoreOp>(op)) {
      uses[op->getAttrOfType<StringAttr>("name").getValue()].push_back(op);
    }
  });
  for (LinearOp linear : linears)
    trySplit(linear);
  if (!hasOrder()) // else gradients of logits would be summed over other shares than the parts
    for (StringRef weight : weights)
      trySplitTable(weight);
}

SmallVector<LinearOp> ShardSplits::getSummed() const {
  SmallVector<LinearOp> summed;
  for (const auto &[value, split] : splits)
    for (OpOperand &use : value.getUses())
      if (auto linear = dyn_cast<LinearOp>(use.getOwner()); linear && &use == &linear.getXMutable())
        summed.push_back(linear);
  return summed;
}

bool ShardSplits::add(Value value, const Split &split) {
  if (auto known = splits.find(value); known != splits.end())
    return known->second == split;
  const int64_t shares = ranks / split.group;
  if (llvm::any_of(split.sections, [&](int64_t extent) { return extent % shares != 0; }))
    return false;
  // A gradient of one column is reduced along it, of several adjacent ones is not: the summation order would differ.
  const bool isOneColumn = split.axis == lastAxis(value) && split.isWhole() && split.sections[0] == shares;
  if (hasOrder() && isOneColumn)
    return false;
  splits.insert({value, split});
  waiting.push_back(value);
  return true;
}

bool ShardSplits::addWhole(Value value, unsigned axis, int64_t group) {
  auto extent = dyn_cast<AffineConstantExpr>(getExtents(tensorTypeOf(value))[axis]);
  return extent && add(value, {axis, {extent.getValue()}, group});
}

bool ShardSplits::propagateAxes(Value one, Value other, Value known, const Split &split,
                                function_ref<std::optional<unsigned>(unsigned)> toOther,
                                function_ref<std::optional<unsigned>(unsigned)> toOne) {
  std::optional<unsigned> axis = known == one ? toOther(split.axis) : toOne(split.axis);
  if (!axis)
    return false;
  Value next = known == one ? other : one;
  const bool isSame = getExtents(tensorTypeOf(next))[*axis] == getExtents(tensorTypeOf(known))[split.axis];
  return isSame ? add(next, {*axis, split.sections, split.group})
                : split.isWhole() && addWhole(next, *axis, split.group);
}

bool ShardSplits::propagateLinear(LinearOp linear, Value known, const Split &split) {
  auto weight = linear.getWeight().getDefiningOp<ParameterOp>();
  auto bias = linear.getBias() ? linear.getBias().getDefiningOp<ParameterOp>() : ParameterOp();
  if (!weight || (linear.getBias() && !bias) || linear.getScales())
    return false;
  const unsigned outputs = linear.getOutputDim(), inputs = 1 - outputs;
  const bool byInputs = known == linear.getX() || (known == linear.getWeight() && split.axis == inputs);
  if (byInputs)
    return split.group == 1 && (known != linear.getX() || split.axis == lastAxis(known)) &&
           add(linear.getWeight(), {inputs, split.sections}) &&
           add(linear.getX(), {lastAxis(linear.getX()), split.sections});
  if (known == linear.getResult() && split.axis != lastAxis(known))
    return false;
  auto along = [&](unsigned axis) { return Split{axis, split.sections, split.group}; };
  return add(linear.getWeight(), along(outputs)) && (!bias || add(linear.getBias(), along(0))) &&
         add(linear.getResult(), along(lastAxis(linear.getResult())));
}

/// Returns the range of an axis that the op takes from its first operand; nullopt if the range is not static.
static std::optional<std::pair<int64_t, int64_t>> rangeOf(Operation *op, unsigned axis) {
  auto slice = dyn_cast<SliceOp>(op);
  auto append = dyn_cast<AppendOp>(op);
  const bool isAlong = slice ? slice.getAxis() == axis && !slice.getAtEnd() : append && axis == lastAxis(append.getX());
  auto extent =
      isAlong ? dyn_cast<AffineConstantExpr>(getExtents(tensorTypeOf(op->getResult(0)))[axis]) : AffineConstantExpr();
  if (!extent)
    return std::nullopt;
  return std::pair(static_cast<int64_t>(slice ? slice.getStart() : append.getColumn()), extent.getValue());
}

/// Splits a joint value into sections: each user takes one range of the axis, and together they cover it.
bool ShardSplits::addSections(Value joint, unsigned axis) {
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
  return isConstant(getExtents(tensorTypeOf(joint))[axis], end) && add(joint, split) &&
         llvm::all_of(joint.getUsers(), [&](Operation *user) { return addWhole(user->getResult(0), axis); });
}

bool ShardSplits::propagateSlice(SliceOp slice, Value known, const Split &split) {
  if (split.axis == slice.getAxis())
    return split.group == 1 && addSections(slice.getX(), split.axis);
  return add(known == slice.getX() ? slice.getResult() : slice.getX(), split);
}

/// Operands that are broadcast along the axis are not split.
bool ShardSplits::propagatePointwise(Operation *op, Value known, const Split &split) {
  Value result = op->getResult(0);
  const unsigned fromEnd = lastAxis(known) - split.axis; // counted from the last axis
  for (Value value : llvm::concat<Value>(SmallVector<Value>{result}, llvm::to_vector(op->getOperands()))) {
    if (tensorTypeOf(value).getRank() <= static_cast<int64_t>(fromEnd))
      continue;
    const unsigned axis = lastAxis(value) - fromEnd;
    AffineExpr extent = getExtents(tensorTypeOf(value))[axis];
    if (extent == getExtents(tensorTypeOf(known))[split.axis]) {
      if (!add(value, {axis, split.sections, split.group}))
        return false;
    } else if (!isConstant(extent, 1) || value == result) {
      return false;
    }
  }
  return true;
}

/// With fewer key heads than ranks, each head is replicated among the group of ranks that have its queries. A trained
/// value gets its gradient from all ranks or from one, not from a group, so in training each rank has all heads and
/// selects one.
bool ShardSplits::addKeys(AttentionOp attention) {
  const int64_t heads = attention.getNumKeyValueHeads();
  if (heads % ranks != 0 && ranks % heads != 0)
    return false;
  const int64_t group = heads < ranks ? ranks / heads : 1;
  if (group > 1 && isTrained)
    return !isSplit(attention.getKey()) && !isSplit(attention.getValue());
  return llvm::all_of(ArrayRef<Value>{attention.getKey(), attention.getValue()},
                      [&](Value value) { return addWhole(value, lastAxis(value), group); });
}

bool ShardSplits::propagateAttention(AttentionOp attention, const Split &split) {
  if (attention.getHeads() % ranks != 0 || attention.getSinks())
    return false;
  if (Value mask = attention.getMask(); mask &&
                                        tensorTypeOf(mask).getRank() > tensorTypeOf(attention.getQuery()).getRank() &&
                                        !isConstant(getExtents(tensorTypeOf(mask)).end()[-3], 1))
    return false;
  Value queries = attention.getQuery(), result = attention.getResult();
  return split.isWhole() && addWhole(queries, lastAxis(queries)) && addWhole(result, lastAxis(result)) &&
         addKeys(attention);
}

/// Splits the state in all ops that read or write it.
bool ShardSplits::propagateState(Operation *op, const Split &split) {
  if (split.axis == 0)
    return false;
  for (Operation *use : uses.lookup(op->getAttrOfType<StringAttr>("name").getValue())) {
    auto append = dyn_cast<AppendOp>(use);
    const bool isOfJoint = append && append.getX().getType().getDimSize(lastAxis(append.getX())) !=
                                         append.getType().getDimSize(lastAxis(append));
    if (isOfJoint && !(split.group == 1 && split.axis == lastAxis(append) && addSections(append.getX(), split.axis)))
      return false;
    for (Value value : isOfJoint ? SmallVector<Value>(use->getResults())
                                 : llvm::to_vector(llvm::concat<Value>(llvm::to_vector(use->getOperands()),
                                                                       llvm::to_vector(use->getResults()))))
      if (!addWhole(value, split.axis, split.group))
        return false;
  }
  return true;
}

/// Splits the parameter in all entries. Groups of elements that share a scale are not cut.
bool ShardSplits::propagateParameter(ParameterOp parameter, const Split &split) {
  StorageAttr storage = parameter.getStorageAttr();
  const bool cutsGroups = storage && storage.isGrouped() && split.axis != storage.getDim() &&
                          llvm::any_of(split.sections, [&](int64_t extent) {
                            return extent / (ranks / split.group) % getWhole(storage) != 0;
                          });
  if (parameter.getSources().size() > 1 || cutsGroups)
    return false;
  StringRef name = cast<StringAttr>(parameter.getSources()[0]).getValue();
  return llvm::all_of(uses.lookup(name), [&](Operation *use) { return add(use->getResult(0), split); });
}

bool ShardSplits::propagate(Operation *op, Value known, const Split &split) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return propagateLinear(linear, known, split);
  if (auto slice = dyn_cast<SliceOp>(op))
    return propagateSlice(slice, known, split);
  if (auto attention = dyn_cast<AttentionOp>(op))
    return split.axis == lastAxis(known) && known != attention.getMask() && known != attention.getLengths() &&
           propagateAttention(attention, split);
  if (isa<StateOp, AppendOp, StoreOp>(op))
    return propagateState(op, split);
  if (auto parameter = dyn_cast<ParameterOp>(op))
    return propagateParameter(parameter, split);
  if (auto constant = dyn_cast<ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (auto view = dyn_cast<ReshapeOp>(op)) {
    const SmallVector<AffineExpr> from = getExtents(tensorTypeOf(view.getX())), to = getExtents(tensorTypeOf(view));
    return propagateAxes(
        view.getX(), view, known, split, [&](unsigned axis) { return reshapedAxis(from, to, axis, view.getContext()); },
        [&](unsigned axis) { return reshapedAxis(to, from, axis, view.getContext()); });
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
  if (isa<LayerNormOp, RmsNormOp>(op)) // heads that are normalised separately
    return (known == op->getOperand(0) || known == op->getResult(0)) && split.axis != lastAxis(known) &&
           (split.isWhole() || !hasOrder()) && add(op->getOperand(0), split) && add(op->getResult(0), split);
  if (isa<QuantizeRowsOp, DropoutOp>(op))
    return false;
  return hasRole(op, KernelRole::Pointwise) && propagatePointwise(op, known, split);
}

bool ShardSplits::isConsistent(ArrayRef<Value> added) const {
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

void ShardSplits::trySplit(LinearOp byInputs) {
  if (isSplit(byInputs.getX()))
    return;
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
    return;
  while (splits.size() > before)
    splits.pop_back();
}

bool ShardSplits::isTableUse(OpOperand &use) const {
  if (isa<EmbeddingOp>(use.getOwner()))
    return !hasParts && use.getOperandNumber() == 1;
  auto linear = dyn_cast<LinearOp>(use.getOwner());
  return linear && &use == &linear.getWeightMutable() && linear.getOutputDim() == 0 && !linear.getBias() &&
         !linear.getScales() && !isSplit(linear.getX()) && !isSplit(linear.getResult());
}

void ShardSplits::trySplitTable(StringRef name) {
  constexpr int64_t rowsByColumns = 4; // with fewer rows the all-reduce takes longer than the split saves
  const bool isTable = llvm::all_of(uses.lookup(name), [&](Operation *op) {
    auto parameter = dyn_cast<ParameterOp>(op);
    if (!parameter || parameter.getSources().size() > 1 || isSplit(parameter))
      return false;
    ArrayRef<int64_t> shape = tensorTypeOf(parameter).getShape();
    if (shape.size() != 2)
      return false;
    const int64_t rows = shape[0], share = llvm::divideCeil(rows, ranks);
    return rows > share * (ranks - 1) && rows >= rowsByColumns * shape[1] &&
           llvm::all_of(parameter->getUses(), [&](OpOperand &use) { return isTableUse(use); });
  });
  if (isTable)
    tables.push_back(name);
}

} // namespace mlir::kiln
