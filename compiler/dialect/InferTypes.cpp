// SPDX-License-Identifier: Apache-2.0
//
// The result type of each op from its operands and attributes, with the op's rules checked on the way. It serves
// construction and verification alike, so the rules exist once.
#include "compiler/dialect/InferTypes.h"

#include "compiler/dialect/Check.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {
namespace {

RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A type with these extents, over as many symbols as the operands have.
template <class Adaptor> RankedTensorType resultType(Adaptor op, ArrayRef<AffineExpr> extents, Type element) {
  return getTensorType(extents, element, getNumSymbols(op.getOperands().getTypes()));
}

/// The checks that come first for every op.
template <class Adaptor> LogicalResult checkOperands(Adaptor op, const Check &check) {
  return check.extents(op.getOperands().getTypes());
}

/// `element` is null for the operand's element type.
template <class Adaptor>
LogicalResult inferReduction(std::optional<Location> location, Adaptor op, Type element, SmallVectorImpl<Type> &types) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)) || failed(check.axis(rules::reduction_c1, op.getAxis(), x)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(x);
  extents.erase(extents.begin() + op.getAxis());
  types.push_back(resultType(op, extents, element ? element : x.getElementType()));
  return success();
}

/// A norm's moments, if it has any: two of one type, of panels of x.
template <class Adaptor> LogicalResult checkMoments(Adaptor op, const Check &check) {
  if (op.getMoments().empty())
    return success();
  RankedTensorType x = tensorType(op.getX()), first = tensorType(op.getMoments().front());
  SmallVector<RankedTensorType> types;
  for (Value moments : op.getMoments())
    types.push_back(tensorType(moments));
  const int64_t columns = x.getShape().back(), panels = first.getRank() > 0 ? first.getShape().back() : 0;
  if (types.size() == 2 && types[0] == types[1] && first.getElementType() == x.getElementType() && panels > 0 &&
      columns > 0 && columns % panels == 0 &&
      ArrayRef(getExtents(x)).drop_back() == ArrayRef(getExtents(first)).drop_back())
    return success();
  types.insert(types.begin(), x);
  return check.fail("a norm requires two moments, each [rows of x, panels of its columns]", check.text(types));
}

} // namespace

LogicalResult inferBroadcast(std::optional<Location> location, ValueRange operands, Type element,
                             SmallVectorImpl<Type> &types) {
  Check check(location, operands);
  RankedTensorType lhs = tensorType(operands[0]), rhs = tensorType(operands[1]);
  if (failed(check.extents(operands.getTypes())) || failed(check.sameElement(rules::broadcast_c2, {lhs, rhs})))
    return failure();
  auto extents = check.broadcast(rules::broadcast_c1, getExtents(lhs), getExtents(rhs));
  if (failed(extents))
    return failure();
  types.push_back(
      getTensorType(*extents, element ? element : lhs.getElementType(), getNumSymbols(operands.getTypes())));
  return success();
}

/// Infers once more and compares: extents, not types, since equal extents can be written differently.
LogicalResult verifyInferredTypes(Operation *op) {
  SmallVector<Type> types;
  if (failed(cast<InferTypeOpInterface>(op).inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                                             op->getDiscardableAttrDictionary(),
                                                             op->getPropertiesStorage(), op->getRegions(), types)))
    return failure();
  Check check(op);
  for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
    auto given = tensorType(result), expected = cast<RankedTensorType>(type);
    if (failed(check.extents(given)))
      return failure();
    if (given.getElementType() != expected.getElementType() || getExtents(given) != getExtents(expected))
      return check.fail((op->getName().stripDialect() + " requires the result that follows from its operands").str(),
                        check.text(given), check.text(expected));
  }
  return success();
}

#define KILN_INFER(OP)                                                                                                 \
  LogicalResult OP::inferReturnTypes([[maybe_unused]] MLIRContext *context, std::optional<Location> location,          \
                                     Adaptor op, SmallVectorImpl<Type> &types)

KILN_INFER(WhereOp) {
  Check check(location, op.getOperands());
  RankedTensorType condition = tensorType(op.getCondition()), lhs = tensorType(op.getLhs()),
                   rhs = tensorType(op.getRhs());
  if (failed(checkOperands(op, check)) || failed(check.sameElement(rules::broadcast_c2, {lhs, rhs})))
    return failure();
  auto both = check.broadcast(rules::broadcast_c1, getExtents(lhs), getExtents(rhs));
  if (failed(both))
    return failure();
  auto extents = check.broadcast(rules::broadcast_c1, getExtents(condition), *both);
  if (failed(extents))
    return failure();
  types.push_back(resultType(op, *extents, lhs.getElementType()));
  return success();
}

KILN_INFER(MeanOp) { return inferReduction(location, op, {}, types); }
KILN_INFER(MaxOp) { return inferReduction(location, op, {}, types); }
KILN_INFER(SumOp) { return inferReduction(location, op, {}, types); }
KILN_INFER(ArgmaxOp) { return inferReduction(location, op, IntegerType::get(context, 32), types); }

KILN_INFER(LayerNormOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight()), bias = tensorType(op.getBias());
  if (failed(checkOperands(op, check)) || failed(check.sameElement(rules::layer_norm_c4, {x, weight, bias})))
    return failure();
  if (x.getRank() < 1 || getExtents(weight) != ArrayRef(getExtents(x)).take_back())
    return check.fail(rules::layer_norm_c1, check.text({x, weight}));
  if (getExtents(bias) != getExtents(weight))
    return check.fail(rules::layer_norm_c2, check.text({weight, bias}));
  if (!(op.getEpsilon().convertToDouble() > 0))
    return check.fail(rules::layer_norm_c3, std::to_string(op.getEpsilon().convertToDouble()));
  if (failed(checkMoments(op, check)))
    return failure();
  types.push_back(resultType(op, getExtents(x), x.getElementType()));
  return success();
}

KILN_INFER(RmsNormOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight());
  if (failed(checkOperands(op, check)) || failed(check.sameElement(rules::rms_norm_c3, {x, weight})))
    return failure();
  if (x.getRank() < 1 || getExtents(weight) != ArrayRef(getExtents(x)).take_back())
    return check.fail(rules::rms_norm_c1, check.text({x, weight}));
  if (!(op.getEpsilon().convertToDouble() > 0))
    return check.fail(rules::rms_norm_c2, std::to_string(op.getEpsilon().convertToDouble()));
  if (failed(checkMoments(op, check)))
    return failure();
  types.push_back(resultType(op, getExtents(x), x.getElementType()));
  return success();
}

KILN_INFER(PanelMomentsOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)))
    return failure();
  const auto width = int64_t(op.getWidth());
  if (x.getRank() < 1 || width < 1 || ShapedType::isDynamic(x.getShape().back()) || x.getShape().back() % width != 0)
    return check.fail("panel_moments requires panels of columns of a width that divides their number",
                      check.text(x) + ", width " + std::to_string(width));
  SmallVector<AffineExpr> extents = getExtents(x);
  extents.back() = getAffineConstantExpr(x.getShape().back() / width, context);
  types.append(2, resultType(op, extents, x.getElementType()));
  return success();
}

KILN_INFER(EmbeddingOp) {
  Check check(location, op.getOperands());
  RankedTensorType indices = tensorType(op.getIndices()), table = tensorType(op.getTable());
  if (failed(checkOperands(op, check)))
    return failure();
  if (table.getRank() != 2)
    return check.fail(rules::embedding_c2, check.text(table));
  if (op.getIndices().getDefiningOp<PositionsOp>() && indices.getRank() == 1) {
    AffineExpr rows = getExtents(table).front(), positions = getExtents(indices).front();
    if (auto spare = check.knownBounds(rows - positions); spare && spare->min < 0 && !check.atLeast(rows, positions))
      return check.fail(rules::embedding_c3, check.text(rows), check.text(positions));
  }
  SmallVector<AffineExpr> extents = getExtents(indices);
  extents.push_back(getExtents(table).back());
  types.push_back(resultType(op, extents, table.getElementType()));
  return success();
}

KILN_INFER(PositionsOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)) || failed(check.axis(rules::positions_c1, op.getAxis(), x)))
    return failure();
  types.push_back(resultType(op, getExtents(x)[op.getAxis()], IntegerType::get(context, 32)));
  return success();
}

KILN_INFER(GatherOp) {
  Check check(location, op.getOperands());
  RankedTensorType table = tensorType(op.getTable());
  if (failed(checkOperands(op, check)) || failed(check.axis(rules::gather_c2, op.getAxis(), table)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(table), indices = getExtents(tensorType(op.getIndices()));
  extents.erase(extents.begin() + op.getAxis());
  extents.insert(extents.begin() + op.getAxis(), indices.begin(), indices.end());
  types.push_back(resultType(op, extents, table.getElementType()));
  return success();
}

KILN_INFER(LinearOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 1)
    return check.fail(rules::linear_c2, check.text(x));
  if (weight.getRank() != 2)
    return check.fail(rules::linear_c3, check.text(weight));
  SmallVector<AffineExpr> extents = getExtents(x), weights = getExtents(weight);
  if (op.getWeightOrder() == WeightOrder::InOut)
    std::swap(weights[0], weights[1]);
  if (extents.back() != weights[1])
    return check.fail(rules::linear_c1, check.text(extents.back()), check.text(weights[1]));
  RankedTensorType floats = op.getScales() ? tensorType(op.getScales()) : x;
  if (op.getScales() && (!x.getElementType().isInteger(8) || getExtents(floats) != ArrayRef(extents).drop_back()))
    return check.fail("linear with scales requires an input of i8 and a scale for each of its rows",
                      check.text({x, floats}));
  if (failed(check.sameElement(rules::linear_c5, {floats, weight})))
    return failure();
  if (op.getBias()) {
    RankedTensorType bias = tensorType(op.getBias());
    if (getExtents(bias) != ArrayRef(weights).take_front())
      return check.fail(rules::linear_c4, check.text(bias), check.text(ArrayRef(weights).take_front()));
    if (failed(check.sameElement(rules::linear_c5, {floats, bias})))
      return failure();
  }
  extents.back() = weights[0];
  types.push_back(resultType(op, extents, floats.getElementType()));
  return success();
}

KILN_INFER(RowScalesOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 1)
    return check.fail("row_scales requires rows: a rank of 1 or more", check.text(x));
  types.push_back(resultType(op, ArrayRef(getExtents(x)).drop_back(), x.getElementType()));
  return success();
}

KILN_INFER(QuantizeRowsOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), scales = tensorType(op.getScales());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 1 || getExtents(scales) != ArrayRef(getExtents(x)).drop_back())
    return check.fail("quantize_rows requires a scale for each row", check.text({x, scales}));
  types.push_back(resultType(op, getExtents(x), IntegerType::get(context, 8)));
  return success();
}

KILN_INFER(MatmulOp) {
  Check check(location, op.getOperands());
  RankedTensorType a = tensorType(op.getA()), b = tensorType(op.getB());
  if (failed(checkOperands(op, check)))
    return failure();
  if (a.getRank() < 2 || b.getRank() < 2)
    return check.fail(rules::matmul_c2, check.text({a, b}));
  SmallVector<AffineExpr> left = getExtents(a), right = getExtents(b);
  if (op.getTransposeB())
    std::swap(right[right.size() - 1], right[right.size() - 2]);
  AffineExpr columns = right.pop_back_val(), inner = right.pop_back_val();
  AffineExpr leftInner = left.pop_back_val(), rows = left.pop_back_val();
  if (leftInner != inner)
    return check.fail(rules::matmul_c1, check.text(leftInner), check.text(inner));
  auto extents = check.broadcast(rules::matmul_c3, left, right);
  if (failed(extents) || failed(check.sameElement(rules::matmul_c4, {a, b})))
    return failure();
  extents->append({rows, columns});
  types.push_back(resultType(op, *extents, a.getElementType()));
  return success();
}

/// -1: a run-time extent.
static int64_t fixedExtent(AffineExpr extent) {
  auto constant = dyn_cast<AffineConstantExpr>(extent);
  return constant ? constant.getValue() : -1;
}

/// Queries and keys have the widths of the heads, the mask broadcasts to [..., queries, keys], or with one axis more
/// than the queries to [..., heads, queries, keys], the lengths have the leading extents, causal queries have enough
/// keys.
template <class Adaptor> static LogicalResult checkScores(Adaptor op, const Check &check) {
  RankedTensorType query = tensorType(op.getQuery());
  SmallVector<AffineExpr> q = getExtents(query), k = getExtents(tensorType(op.getKey()));
  int64_t heads = op.getHeads(), keyHeads = op.getKeyValueHeads().value_or(heads);
  if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0)
    return check.fail(rules::attention_c16, Twine(heads), "a multiple of " + Twine(keyHeads));
  int64_t width = fixedExtent(q.back());
  if (width < 1 || width % heads != 0)
    return check.fail(rules::attention_c1, check.text(q.back()), "a multiple of " + Twine(heads));
  if (int64_t wanted = width / heads * keyHeads; fixedExtent(k.back()) != wanted)
    return check.fail(rules::attention_c2, check.text(k.back()), Twine(wanted));
  if (op.getMask()) {
    RankedTensorType mask = tensorType(op.getMask());
    SmallVector<AffineExpr> scores = q, given = getExtents(mask);
    scores.back() = k[k.size() - 2];
    if (given.size() == q.size() + 1)
      scores.insert(scores.end() - 2, getAffineConstantExpr(heads, mask.getContext()));
    bool fits = given.size() <= scores.size();
    for (size_t i = 0; fits && i < given.size(); ++i)
      fits = isConstant(given[i], 1) || given[i] == scores[scores.size() - given.size() + i];
    if (!fits)
      return check.fail(rules::attention_c7, check.text(mask), check.text(scores));
    if (failed(check.sameElement(rules::attention_c8, {query, mask})))
      return failure();
  }
  if (op.getLengths() && getExtents(tensorType(op.getLengths())) != ArrayRef(q).drop_back(2))
    return check.fail(rules::attention_c9, check.text(tensorType(op.getLengths())),
                      check.text(ArrayRef(q).drop_back(2)));
  if (!(op.getScale().convertToDouble() > 0))
    return check.fail(rules::attention_c11, std::to_string(op.getScale().convertToDouble()));
  if (!op.getCausal())
    return success();
  AffineExpr queries = q[q.size() - 2], keys = k[k.size() - 2];
  if (!check.atLeast(keys, queries))
    return check.fail(rules::attention_c10, check.text(queries) + " queries and " + check.text(keys) + " keys");
  return success();
}

/// One rank, one batch and one type for all.
static LogicalResult checkAttended(ArrayRef<RankedTensorType> types, const Check &check) {
  for (RankedTensorType type : types)
    if (type.getRank() < 2)
      return check.fail(rules::attention_c6, check.text(types));
  SmallVector<AffineExpr> first = getExtents(types[0]);
  for (RankedTensorType type : types)
    if (SmallVector<AffineExpr> extents = getExtents(type);
        ArrayRef(extents).drop_back(2) != ArrayRef(first).drop_back(2))
      return check.fail(rules::attention_c5, check.text(types));
  return check.sameElement(rules::attention_c12, types);
}

KILN_INFER(AttentionOp) {
  Check check(location, op.getOperands());
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey()), value = tensorType(op.getValue());
  if (failed(checkOperands(op, check)) || failed(checkAttended({query, key, value}, check)) ||
      failed(checkScores(op, check)))
    return failure();
  int64_t heads = op.getHeads(), keyHeads = op.getKeyValueHeads().value_or(heads);
  SmallVector<AffineExpr> q = getExtents(query), k = getExtents(key), v = getExtents(value);
  int64_t width = fixedExtent(v.back());
  if (width < 1 || width % keyHeads != 0)
    return check.fail(rules::attention_c3, check.text(v.back()), "a multiple of " + Twine(keyHeads));
  AffineExpr keys = k[k.size() - 2], values = v[v.size() - 2];
  if (values != keys)
    return check.fail(rules::attention_c4, check.text(values), check.text(keys));
  q.back() = getAffineConstantExpr(width / keyHeads * heads, query.getContext());
  types.push_back(resultType(op, q, query.getElementType()));
  return success();
}

KILN_INFER(AttentionScoresOp) {
  Check check(location, op.getOperands());
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey());
  if (failed(checkOperands(op, check)) || failed(checkAttended({query, key}, check)) || failed(checkScores(op, check)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(query), k = getExtents(key);
  extents.back() = k[k.size() - 2];
  extents.insert(extents.end() - 2, getAffineConstantExpr(op.getHeads(), query.getContext()));
  types.push_back(resultType(op, extents, query.getElementType()));
  return success();
}

KILN_INFER(TransposeOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)))
    return failure();
  SmallVector<int64_t> sorted(op.getPermutation());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(x.getRank()))) {
    auto axes = llvm::map_range(op.getPermutation(), [](int64_t axis) { return std::to_string(axis); });
    return check.fail(rules::transpose_c1, check.text(x) + " by <" + llvm::join(axes, ", ") + ">");
  }
  SmallVector<AffineExpr> extents = getExtents(x), result;
  for (int64_t axis : op.getPermutation())
    result.push_back(extents[axis]);
  types.push_back(resultType(op, result, x.getElementType()));
  return success();
}

KILN_INFER(ConcatOp) {
  Check check(location, op.getOperands());
  if (op.getInputs().empty())
    return check.fail("concat requires at least one operand", "none");
  SmallVector<RankedTensorType> inputs = llvm::map_to_vector(op.getInputs(), tensorType);
  if (failed(checkOperands(op, check)) || failed(check.sameElement(rules::concat_c1, inputs)))
    return failure();
  if (!llvm::all_equal(llvm::map_range(inputs, [](RankedTensorType type) { return type.getRank(); })))
    return check.fail(rules::concat_c1, check.text(inputs));
  if (failed(check.axis(rules::concat_c3, op.getAxis(), inputs[0])))
    return failure();
  SmallVector<AffineExpr> result = getExtents(inputs[0]);
  for (RankedTensorType input : ArrayRef(inputs).drop_front()) {
    SmallVector<AffineExpr> extents = getExtents(input);
    for (int64_t i = 0; i < input.getRank(); ++i)
      if (i != static_cast<int64_t>(op.getAxis()) && extents[i] != result[i])
        return check.fail(rules::concat_c2, check.text(inputs));
    result[op.getAxis()] = canonicalExtent(result[op.getAxis()] + extents[op.getAxis()]);
  }
  types.push_back(resultType(op, result, inputs[0].getElementType()));
  return success();
}

/// Appends how many windows each axis of an image has; the rules of windows are checked on the way.
static LogicalResult appendWindows(const Check &check, RankedTensorType image, ArrayRef<int64_t> kernel,
                                   ArrayRef<int64_t> stride, ArrayRef<int64_t> padding, ArrayRef<int64_t> dilation,
                                   SmallVectorImpl<AffineExpr> &result) {
  if (stride.size() != 2 || padding.size() != 2 || dilation.size() != 2 || kernel.size() != 2)
    return check.fail("a window requires two numbers for each of its properties", Twine(stride.size()));
  auto least = [](ArrayRef<int64_t> pair) { return std::min(pair[0], pair[1]); };
  if (least(kernel) < 1)
    return check.fail(rules::window_c4, Twine(least(kernel)));
  if (least(stride) < 1 || least(dilation) < 1 || least(padding) < 0)
    return check.fail(rules::window_c1, "stride " + Twine(least(stride)) + ", dilation " + Twine(least(dilation)) +
                                            ", padding " + Twine(least(padding)));
  // So that nothing that is computed of them overflows.
  for (ArrayRef<int64_t> pair : {kernel, stride, padding, dilation})
    for (int64_t number : pair)
      if (!llvm::isInt<32>(number))
        return check.fail("a window requires numbers of at most 2147483647", Twine(number));
  SmallVector<AffineExpr> extents = getExtents(image);
  for (unsigned axis = 0; axis < 2; ++axis) {
    AffineExpr extent = extents[extents.size() - 3 + axis];
    AffineExpr room = canonicalExtent(extent + (2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1));
    if (auto bounds = check.bounds(room); bounds && bounds->min < 0)
      return check.fail(rules::window_c2, check.text(image));
    AffineExpr count = canonicalExtent(room.floorDiv(stride[axis]) + 1);
    bool isPolynomial = true;
    count.walk([&](AffineExpr part) { isPolynomial &= part.getKind() != AffineExprKind::FloorDiv; });
    if (!isPolynomial)
      return check.fail(rules::window_c3, check.text(extent), "a multiple of " + Twine(stride[axis]));
    result.push_back(count);
  }
  return success();
}

KILN_INFER(Conv2dOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 3)
    return check.fail(rules::conv2d_c1, check.text(x));
  if (weight.getRank() != 4 || !weight.hasStaticShape())
    return check.fail(rules::conv2d_c2, check.text(weight));
  int64_t groups = op.getGroups(), outputs = weight.getDimSize(0), channels;
  if (llvm::MulOverflow(weight.getDimSize(1), groups, channels))
    channels = -1; // which no tensor has
  if (!isConstant(getExtents(x).back(), channels))
    return check.fail(rules::conv2d_c3, check.text(getExtents(x).back()), Twine(channels));
  if (groups < 1 || outputs % groups != 0)
    return check.fail(rules::conv2d_c4, Twine(outputs), "a multiple of " + Twine(groups));
  if (op.getBias()) {
    RankedTensorType bias = tensorType(op.getBias());
    if (bias.getRank() != 1 || bias.getDimSize(0) != outputs)
      return check.fail(rules::conv2d_c5, check.text(bias), "[" + Twine(outputs) + "]");
    if (failed(check.sameElement(rules::conv2d_c6, {x, bias})))
      return failure();
  }
  if (failed(check.sameElement(rules::conv2d_c6, {x, weight})))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(x), result(extents.begin(), extents.end() - 3);
  if (failed(appendWindows(check, x, weight.getShape().drop_front(2), op.getStride(), op.getPadding(), op.getDilation(),
                           result)))
    return failure();
  result.push_back(getAffineConstantExpr(outputs, context));
  types.push_back(resultType(op, result, x.getElementType()));
  return success();
}

template <class Adaptor>
static LogicalResult inferPool(std::optional<Location> location, Adaptor op, SmallVectorImpl<Type> &types) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 3)
    return check.fail(rules::pool2d_c1, check.text(x));
  SmallVector<AffineExpr> extents = getExtents(x), result(extents.begin(), extents.end() - 3);
  if (failed(appendWindows(check, x, op.getKernel(), op.getStride(), op.getPadding(), {1, 1}, result)))
    return failure();
  for (auto [padding, kernel] : llvm::zip_equal(op.getPadding(), op.getKernel()))
    if (2 * padding > kernel)
      return check.fail(rules::pool2d_c3, Twine(padding), "at most half of " + Twine(kernel));
  result.push_back(extents.back());
  types.push_back(resultType(op, result, x.getElementType()));
  return success();
}

KILN_INFER(MaxPool2dOp) { return inferPool(location, op, types); }
KILN_INFER(AvgPool2dOp) { return inferPool(location, op, types); }

#undef KILN_INFER

} // namespace mlir::kiln
