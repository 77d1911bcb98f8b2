// SPDX-License-Identifier: Apache-2.0
//
// 1. Collapses leading axes that rows may share (CollapseRows.h), and gives attention its operands and result with
// separate head axes: both are views (kiln.reshape) at the call.
// 2. Replaces the dynamic dimensions of the kernel's types by the kernel's own symbols: s0 * s1 that never occurs apart
// becomes one symbol.
// 3. Clones the ops into the function with those types.
#include "compiler/transforms/OutlineKernel.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/transforms/CollapseRows.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kiln {
namespace {

/// The dynamic dimensions of a kernel: expressions over the module's symbols, each of which becomes a symbol of the
/// kernel. Where an op computes new dimensions from those of its operands, as a concat does, the kernel uses the
/// module's own symbols for all of them.
class KernelSymbols {
public:
  void add(RankedTensorType type) {
    for (AffineExpr extent : getExtents(type))
      if (!isa<AffineConstantExpr>(extent))
        extents.insert(extent);
  }

  /// Adds the dimensions of an op's results. Axes along which the op derives dimensions add the module's symbols.
  void add(Operation *op, ArrayRef<RankedTensorType> results) {
    for (AffineExpr extent : getDerivedExtents(op))
      extent.walk([&](AffineExpr part) {
        if (isa<AffineSymbolExpr>(part))
          extents.insert(part);
      });
    for (RankedTensorType type : results)
      add(type);
  }

  /// Chooses the kernel's symbols. Called after the last add().
  void choose() {
    for (AffineExpr extent : extents)
      if (isa<AffineSymbolExpr>(extent))
        atoms.insert(extent);
    SmallVector<AffineExpr> compound;
    for (AffineExpr extent : extents)
      if (!isa<AffineSymbolExpr>(extent) && !isComposed(extent))
        compound.push_back(extent);
    atoms.insert(compound.begin(), compound.end());
  }

  ArrayRef<AffineExpr> getAtoms() const { return atoms.getArrayRef(); }

  RankedTensorType rename(RankedTensorType type) const {
    if (isa_and_nonnull<TiledAttr>(type.getEncoding()))
      return type;
    SmallVector<AffineExpr> extents;
    for (AffineExpr extent : getExtents(type))
      extents.push_back(canonicalExtent(rename(extent)));
    return getTensorType(extents, type.getElementType(), atoms.size());
  }

private:
  /// Returns the sizes of operands and results along the axes whose sizes the op adds, subtracts or divides.
  static SmallVector<AffineExpr> getDerivedExtents(Operation *op) {
    SmallVector<int64_t> axes = cast<KernelOpInterface>(op).getResizedAxes();
    SmallVector<AffineExpr> result;
    for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()), SmallVector<Value>(op->getResults())))
      for (int64_t axis : axes)
        if (auto type = cast<RankedTensorType>(value.getType()); axis < type.getRank())
          result.push_back(getExtents(type)[axis]);
    return result;
  }

  /// Whether the dimension is an expression of symbols that are dimensions themselves.
  bool isComposed(AffineExpr extent) const {
    bool result = true;
    extent.walk([&](AffineExpr part) { result &= !isa<AffineSymbolExpr>(part) || atoms.contains(part); });
    return result;
  }

  AffineExpr rename(AffineExpr extent) const {
    for (auto [i, atom] : llvm::enumerate(atoms))
      if (atom == extent)
        return getAffineSymbolExpr(i, extent.getContext());
    auto binary = dyn_cast<AffineBinaryOpExpr>(extent);
    if (!binary)
      return extent;
    return getAffineBinaryOpExpr(extent.getKind(), rename(binary.getLHS()), rename(binary.getRHS()));
  }

  llvm::SetVector<AffineExpr> extents, atoms;
};

/// The views through which operands and results enter and leave an attention kernel.
class HeadViews {
public:
  HeadViews(const KernelGroup &group, const RowCollapse &collapse) {
    for (auto [operand, heads] : findOperands(group.anchor)) {
      int64_t width = cast<RankedTensorType>(operand.getType()).getShape().back(), headDim = width / heads;
      Value source = operand;
      int64_t start = 0;
      while (Operation *op = source.getDefiningOp()) {
        if (isa<CastOp>(op) && group.contains(op)) {
          source = op->getOperand(0);
          continue;
        }
        auto slice = dyn_cast<SliceOp>(op);
        if (!slice || slice.getAtEnd() || !group.contains(op) ||
            int64_t(slice.getAxis()) != slice.getType().getRank() - 1 ||
            cast<RankedTensorType>(slice.getX().getType()).isDynamicDim(slice.getAxis()))
          break;
        start += slice.getStart();
        source = slice.getX();
      }
      if (source.getDefiningOp() && group.contains(source.getDefiningOp()))
        continue; // a view cannot express how the value was moved
      int64_t whole = cast<RankedTensorType>(source.getType()).getShape().back();
      SmallVector<int64_t> split;
      if (whole == width)
        split = {heads, headDim};
      else if (whole % width == 0 && start % width == 0)
        split = {whole / width, heads, headDim};
      else if (whole % headDim == 0)
        split = {whole / headDim, headDim};
      request(source, split, collapse);
    }
    if (auto attention = dyn_cast<AttentionOp>(group.anchor)) {
      int64_t heads = attention.getHeads(), width = cast<RankedTensorType>(attention.getType()).getShape().back();
      request(attention.getResult(), {heads, width / heads}, collapse);
    }
  }

  /// Returns the view's type; null if the value has none.
  RankedTensorType lookup(Value value) const { return types.lookup(value); }

private:
  /// Returns the operands that are read by heads, with the number of heads.
  static SmallVector<std::pair<Value, int64_t>> findOperands(Operation *anchor) {
    SmallVector<std::pair<Value, int64_t>> result;
    auto add = [&](auto op) {
      result.append({{op.getQuery(), int64_t(op.getHeads())}, {op.getKey(), op.getNumKeyValueHeads()}});
    };
    if (auto scores = dyn_cast<AttentionScoresOp>(anchor))
      add(scores);
    if (auto attention = dyn_cast<AttentionOp>(anchor)) {
      add(attention);
      result.emplace_back(attention.getValue(), attention.getNumKeyValueHeads());
    }
    return result;
  }

  /// Requests that the value's last axis be split. Two different requests become heads of their common head size if it
  /// is equal; otherwise the axis stays whole.
  void request(Value value, ArrayRef<int64_t> split, const RowCollapse &collapse) {
    if (split.empty())
      return;
    RankedTensorType whole = collapse.getType(value);
    const int64_t headDim = split.back();
    auto [entry, isNew] = types.try_emplace(value, splitLastAxis(whole, split));
    if (isNew || entry->second == splitLastAxis(whole, split))
      return;
    const bool isCommon = entry->second.getShape().back() == headDim;
    entry->second = isCommon ? splitLastAxis(whole, {whole.getShape().back() / headDim, headDim}) : whole;
  }

  static RankedTensorType splitLastAxis(RankedTensorType type, ArrayRef<int64_t> split) {
    SmallVector<AffineExpr> extents = getExtents(type);
    extents.pop_back();
    for (int64_t extent : split)
      extents.push_back(getAffineConstantExpr(extent, type.getContext()));
    return getTensorType(extents, type.getElementType(), getNumSymbols(type));
  }

  DenseMap<Value, RankedTensorType> types;
};

Value createView(OpBuilder &builder, Location loc, Value value, RankedTensorType type) {
  return value.getType() == type ? value : Value(ReshapeOp::create(builder, loc, type, value));
}

/// Adjusts axis attributes to the collapsed axes, which count as one.
void adjustAxis(Operation *op, int64_t axes) {
  if (auto axis = op->getAttrOfType<IntegerAttr>("axis"))
    op->setAttr("axis", IntegerAttr::get(axis.getType(), axis.getInt() - (axes - 1)));
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    SmallVector<int64_t> permutation{0};
    for (int64_t axis : transpose.getPermutation().drop_front(axes))
      permutation.push_back(axis - (axes - 1));
    transpose.setPermutation(permutation);
  }
}

/// Dimensions over the module's symbols, which are the first arguments of `entry`.
struct EntryExtents {
  using Value = mlir::Value;
  OpBuilder &builder;
  Location loc;
  func::FuncOp entry;

  Value constant(int64_t number) { return arith::ConstantIndexOp::create(builder, loc, number); }
  Value dim(unsigned) { llvm_unreachable("extents are expressions over symbols"); }
  Value symbol(unsigned position) { return entry.getArgument(position); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value multiply(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
  Value floorDivide(Value a, Value b) { return arith::DivUIOp::create(builder, loc, a, b); }
  Value ceilDivide(Value, Value) { llvm_unreachable("canonical extents round down"); }
  Value modulo(Value, Value) { llvm_unreachable("no extent is a remainder"); }
};

/// Replaces a value of the group by the result of its call, except where it is computed again.
void replaceResult(Value result, Value view, function_ref<bool(Operation *, Operation *)> isInternalUse,
                   CalledValues &called) {
  called[result] = view;
  Operation *producer = result.getDefiningOp();
  result.replaceUsesWithIf(view, [&](OpOperand &use) { return !isInternalUse(use.getOwner(), producer); });
}

} // namespace

func::FuncOp outlineKernel(const KernelGroup &group, func::FuncOp entry, StringRef name,
                           function_ref<bool(Operation *, Operation *)> isInternalUse, CalledValues &called) {
  RowCollapse collapse = findRowCollapse(group);
  HeadViews views(group, collapse);
  SmallVector<Value> operands = group.getOperands();
  auto borderType = [&](Value value) {
    RankedTensorType view = views.lookup(value);
    return view ? view : collapse.getType(value);
  };

  KernelSymbols symbols;
  for (Value value : llvm::concat<const Value>(operands, group.results))
    symbols.add(borderType(value));
  for (Operation *op : group.ops) {
    auto typeOf = [&](Value value) { return collapse.getType(value); };
    symbols.add(op, llvm::map_to_vector(op->getResults(), typeOf));
  }
  symbols.choose();

  OpBuilder builder(entry);
  Location loc = group.anchor->getLoc();
  SmallVector<Type> inputs(symbols.getAtoms().size(), builder.getIndexType()), results;
  for (Value operand : operands)
    inputs.push_back(symbols.rename(borderType(operand)));
  for (Value result : group.results)
    results.push_back(symbols.rename(borderType(result)));
  auto kernel = func::FuncOp::create(builder, loc, name, builder.getFunctionType(inputs, results));
  kernel.setPrivate();
  kernel->setAttr(kernelAttrName, builder.getUnitAttr());
  SmallVector<int64_t> bounds;
  SmallVector<Interval> moduleBounds = getSymbolBounds(entry);
  for (AffineExpr atom : symbols.getAtoms()) {
    Interval interval = getBounds(atom, moduleBounds).value_or(Interval{0, std::numeric_limits<int32_t>::max()});
    bounds.append({std::max<int64_t>(1, interval.min), interval.max}); // a rough bound for products of differences
  }
  kernel->setAttr(boundsAttrName, builder.getDenseI64ArrayAttr(bounds));

  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  for (auto [operand, argument] : llvm::zip_equal(operands, body->getArguments().take_back(operands.size())))
    mapping.map(operand, createView(builder, loc, argument, symbols.rename(collapse.getType(operand))));
  for (Operation *op : group.ops) {
    Operation *clone = builder.clone(*op, mapping);
    for (auto [original, result] : llvm::zip_equal(op->getResults(), clone->getResults()))
      result.setType(symbols.rename(collapse.getType(original)));
    if (auto constant = dyn_cast<ConstantOp>(clone))
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(constant.getType()));
    if (collapse.axes > 1)
      adjustAxis(clone, collapse.axes);
  }
  SmallVector<Value> returned;
  for (auto [result, type] : llvm::zip_equal(group.results, results))
    returned.push_back(createView(builder, loc, mapping.lookup(result), cast<RankedTensorType>(type)));
  func::ReturnOp::create(builder, loc, returned);

  builder.setInsertionPoint(group.getPosition());
  SmallVector<Value> extents, arguments;
  for (AffineExpr atom : symbols.getAtoms())
    extents.push_back(evaluateAffine(atom, EntryExtents{builder, loc, entry}));
  SmallVector<Type> resultTypes;
  for (Value operand : operands) {
    auto found = called.find(operand);
    arguments.push_back(createView(builder, loc, found == called.end() ? operand : found->second, borderType(operand)));
  }
  for (Value result : group.results)
    resultTypes.push_back(borderType(result));
  auto call = CallOp::create(builder, loc, resultTypes, FlatSymbolRefAttr::get(kernel), extents, arguments,
                             /*ends=*/Value(), /*per_group=*/DenseI64ArrayAttr());
  for (auto [original, given] : llvm::zip_equal(group.results, call.getResults())) {
    Value result = original;
    Value view = createView(builder, loc, given, cast<RankedTensorType>(result.getType()));
    replaceResult(result, view, isInternalUse, called);
  }
  return kernel;
}

namespace {

/// The arguments of a call for each group of rows, and the types that the kernel has for them.
struct GroupArguments {
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<int64_t> perGroup;

  void addRows(Value value) {
    values.push_back(value);
    types.push_back(rowsOf(value));
  }
  void addParts(Value value, int64_t groups) {
    perGroup.push_back(values.size());
    values.push_back(value);
    types.push_back(CallOp::getPart(cast<RankedTensorType>(value.getType()), groups));
  }
  /// Returns the type of any number of the value's rows, which is the kernel's only symbol.
  static RankedTensorType rowsOf(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<AffineExpr> extents = getExtents(type);
    extents.front() = getAffineSymbolExpr(0, type.getContext());
    return getTensorType(extents, type.getElementType(), 1);
  }
};

} // namespace

func::FuncOp outlineGroups(const KernelGroup &group, func::FuncOp entry, StringRef name,
                           function_ref<bool(Operation *, Operation *)> isInternalUse, CalledValues &called) {
  auto grouped = cast<GroupedLinearOp>(group.anchor);
  Value result = group.results.front();
  GroupArguments given;
  given.addRows(grouped.getX());
  given.addParts(grouped.getWeight(), grouped.getNumGroups());
  if (grouped.getBias())
    given.addParts(grouped.getBias(), grouped.getNumGroups());
  const size_t ofLinear = given.values.size();
  llvm::SetVector<Value> others; // that the epilogue reads
  llvm::SetVector<Operation *> numbers;
  for (Operation *op : group.ops)
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (op == grouped || (source && group.contains(source)))
        continue;
      if (isa_and_nonnull<ConstantOp>(source) && cast<RankedTensorType>(operand.getType()).getRank() == 0)
        numbers.insert(source); // outside of the loop whose body has the group
      else
        others.insert(operand);
    }
  for (Value other : others)
    given.addRows(other);

  OpBuilder builder(entry);
  const Location loc = grouped.getLoc();
  SmallVector<Type> inputs{builder.getIndexType()};
  llvm::append_range(inputs, given.types);
  auto kernel =
      func::FuncOp::create(builder, loc, name, builder.getFunctionType(inputs, GroupArguments::rowsOf(result)));
  kernel.setPrivate();
  kernel->setAttr(kernelAttrName, builder.getUnitAttr());
  const AffineExpr rows = getExtents(cast<RankedTensorType>(result.getType())).front();
  const Interval most =
      getBounds(rows, getSymbolBounds(entry)).value_or(Interval{1, std::numeric_limits<int32_t>::max()});
  kernel->setAttr(boundsAttrName, builder.getDenseI64ArrayAttr({1, most.max}));

  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  auto arguments = body->getArguments().drop_front();
  IRMapping mapping;
  for (auto [other, argument] : llvm::zip_equal(others, arguments.drop_front(ofLinear)))
    mapping.map(other, argument);
  for (Operation *number : numbers)
    builder.clone(*number, mapping);
  mapping.map(grouped.getResult(), LinearOp::create(builder, loc, arguments[0], arguments[1],
                                                    grouped.getBias() ? Value(arguments[2]) : Value(),
                                                    /*scales=*/Value(), grouped.getWeightOrder())
                                       .getResult());
  for (Operation *op : group.ops)
    if (op != grouped) {
      Operation *clone = builder.clone(*op, mapping);
      if (!isa<ConstantOp>(op))
        clone->getResult(0).setType(GroupArguments::rowsOf(op->getResult(0)));
    }
  func::ReturnOp::create(builder, loc, mapping.lookup(result));

  builder.setInsertionPoint(group.getPosition());
  auto calledOf = [&](Value value) {
    auto found = called.find(value);
    return found == called.end() ? value : found->second;
  };
  Value count = evaluateAffine(rows, EntryExtents{builder, loc, entry});
  auto call = CallOp::create(builder, loc, TypeRange(result.getType()), FlatSymbolRefAttr::get(kernel), count,
                             llvm::map_to_vector(given.values, calledOf), calledOf(grouped.getEnds()),
                             builder.getDenseI64ArrayAttr(given.perGroup));
  replaceResult(result, call.getResult(0), isInternalUse, called);
  return kernel;
}

} // namespace mlir::kiln
