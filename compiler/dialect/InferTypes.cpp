// SPDX-License-Identifier: Apache-2.0
//
// The result type of each op from its operands and attributes, with the op's rules checked on the way. It serves construction and
// verification alike, so the rules exist once.
#include "compiler/dialect/Check.h"

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

template <class Adaptor>
LogicalResult inferBinary(std::optional<Location> location, StringRef mnemonic, Adaptor op, SmallVectorImpl<Type> &types) {
  Check check(location, mnemonic, op.getOperands());
  RankedTensorType lhs = tensorType(op.getLhs()), rhs = tensorType(op.getRhs());
  if (failed(checkOperands(op, check)) || failed(check.sameElement({lhs, rhs})))
    return failure();
  auto extents = check.broadcast(getExtents(lhs), getExtents(rhs));
  if (failed(extents))
    return failure();
  types.push_back(resultType(op, *extents, lhs.getElementType()));
  return success();
}

/// `element` is null for the operand's element type.
template <class Adaptor>
LogicalResult inferReduction(std::optional<Location> location, StringRef mnemonic, Adaptor op, Type element,
                             SmallVectorImpl<Type> &types) {
  Check check(location, mnemonic, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)) || failed(check.axis(op.getAxis(), x)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(x);
  extents.erase(extents.begin() + op.getAxis());
  types.push_back(resultType(op, extents, element ? element : x.getElementType()));
  return success();
}

/// The parameters of a norm have the extent of the last axis.
template <class Adaptor>
LogicalResult inferNorm(std::optional<Location> location, StringRef mnemonic, Adaptor op, ArrayRef<StringRef> names,
                        SmallVectorImpl<Type> &types) {
  Check check(location, mnemonic, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  SmallVector<RankedTensorType> operands = llvm::map_to_vector(op.getOperands(), tensorType);
  if (failed(checkOperands(op, check)) || failed(check.minRank("x", x, 1)) || failed(check.sameElement(operands)))
    return failure();
  for (auto [name, parameter] : llvm::zip_equal(names, ArrayRef(operands).drop_front()))
    if (getExtents(parameter) != ArrayRef(getExtents(x)).take_back())
      return check.fail(name + " of the last extent " + check.text(getExtents(x).back()) + ", got " + check.text(parameter));
  if (op.getEpsilon().convertToDouble() < 0)
    return check.fail("an epsilon of at least 0, got " + Twine(op.getEpsilon().convertToDouble()));
  types.push_back(resultType(op, getExtents(x), x.getElementType()));
  return success();
}

} // namespace

#define KILN_INFER(OP)                                                                                                 \
  LogicalResult OP::inferReturnTypes([[maybe_unused]] MLIRContext *context, std::optional<Location> location, Adaptor op,               \
                                     SmallVectorImpl<Type> &types)

KILN_INFER(AddOp) { return inferBinary(location, "add", op, types); }
KILN_INFER(SubOp) { return inferBinary(location, "sub", op, types); }
KILN_INFER(MulOp) { return inferBinary(location, "mul", op, types); }
KILN_INFER(DivOp) { return inferBinary(location, "div", op, types); }
KILN_INFER(MaximumOp) { return inferBinary(location, "maximum", op, types); }

KILN_INFER(MeanOp) { return inferReduction(location, "mean", op, {}, types); }
KILN_INFER(MaxOp) { return inferReduction(location, "max", op, {}, types); }
KILN_INFER(SumOp) { return inferReduction(location, "sum", op, {}, types); }
KILN_INFER(ArgmaxOp) { return inferReduction(location, "argmax", op, IntegerType::get(context, 32), types); }

KILN_INFER(LayerNormOp) { return inferNorm(location, "layer_norm", op, {"a weight", "a bias"}, types); }
KILN_INFER(RmsNormOp) { return inferNorm(location, "rms_norm", op, {"a weight"}, types); }

KILN_INFER(EmbeddingOp) {
  Check check(location, "embedding", op.getOperands());
  RankedTensorType indices = tensorType(op.getIndices()), table = tensorType(op.getTable());
  if (failed(checkOperands(op, check)) || failed(check.rank("a table", table, 2)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(indices);
  extents.push_back(getExtents(table).back());
  types.push_back(resultType(op, extents, table.getElementType()));
  return success();
}

KILN_INFER(PositionsOp) {
  Check check(location, "positions", op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)) || failed(check.axis(op.getAxis(), x)))
    return failure();
  types.push_back(resultType(op, getExtents(x)[op.getAxis()], IntegerType::get(context, 32)));
  return success();
}

KILN_INFER(GatherOp) {
  Check check(location, "gather", op.getOperands());
  RankedTensorType table = tensorType(op.getTable());
  if (failed(checkOperands(op, check)) || failed(check.axis(op.getAxis(), table)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(table), indices = getExtents(tensorType(op.getIndices()));
  extents.erase(extents.begin() + op.getAxis());
  extents.insert(extents.begin() + op.getAxis(), indices.begin(), indices.end());
  types.push_back(resultType(op, extents, table.getElementType()));
  return success();
}

KILN_INFER(LinearOp) {
  Check check(location, "linear", op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight());
  if (failed(checkOperands(op, check)) || failed(check.minRank("x", x, 1)) || failed(check.rank("a weight", weight, 2)) ||
      failed(check.sameElement({x, weight})))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(x), weights = getExtents(weight);
  if (op.getWeightOrder() == WeightOrder::InOut)
    std::swap(weights[0], weights[1]);
  if (extents.back() != weights[1])
    return check.fail("input width " + check.text(weights[1]) + ", got " + check.text(extents.back()));
  if (Value bias = op.getBias()) {
    RankedTensorType type = tensorType(bias);
    if (failed(check.sameElement({x, type})))
      return failure();
    if (getExtents(type) != ArrayRef(weights).take_front())
      return check.fail("a bias of the output width " + check.text(weights[0]) + ", got " + check.text(type));
  }
  extents.back() = weights[0];
  types.push_back(resultType(op, extents, x.getElementType()));
  return success();
}

KILN_INFER(MatmulOp) {
  Check check(location, "matmul", op.getOperands());
  RankedTensorType a = tensorType(op.getA()), b = tensorType(op.getB());
  if (failed(checkOperands(op, check)) || failed(check.minRank("a", a, 2)) || failed(check.minRank("b", b, 2)) ||
      failed(check.sameElement({a, b})))
    return failure();
  SmallVector<AffineExpr> left = getExtents(a), right = getExtents(b);
  if (op.getTransposeB())
    std::swap(right[right.size() - 1], right[right.size() - 2]);
  AffineExpr columns = right.pop_back_val(), inner = right.pop_back_val();
  AffineExpr leftInner = left.pop_back_val(), rows = left.pop_back_val();
  if (leftInner != inner)
    return check.fail("equal inner extents, got " + check.text(leftInner) + " and " + check.text(inner));
  auto extents = check.broadcast(left, right);
  if (failed(extents))
    return failure();
  extents->append({rows, columns});
  types.push_back(resultType(op, *extents, a.getElementType()));
  return success();
}

KILN_INFER(AttentionOp) {
  Check check(location, "attention", op.getOperands());
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey()), value = tensorType(op.getValue());
  if (failed(checkOperands(op, check)) || failed(check.minRank("queries", query, 2)) ||
      failed(check.minRank("keys", key, 2)) || failed(check.minRank("values", value, 2)) ||
      failed(check.sameElement({query, key, value})))
    return failure();
  int64_t heads = op.getHeads(), keyHeads = op.getKeyValueHeads().value_or(heads);
  if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0)
    return check.fail("heads that are a multiple of the key and value heads, got " + Twine(heads) + " and " + Twine(keyHeads));

  SmallVector<AffineExpr> q = getExtents(query), k = getExtents(key), v = getExtents(value);
  auto width = [](AffineExpr extent) -> int64_t {
    auto constant = dyn_cast<AffineConstantExpr>(extent);
    return constant ? constant.getValue() : -1;
  };
  int64_t queryWidth = width(q.back()), keyWidth = width(k.back()), valueWidth = width(v.back());
  if (queryWidth < 1 || queryWidth % heads != 0)
    return check.fail("a query width that is a multiple of the heads, got " + check.text(q.back()) + " and " + Twine(heads));
  if (keyWidth != queryWidth / heads * keyHeads)
    return check.fail("key width " + Twine(queryWidth / heads * keyHeads) + ", got " + check.text(k.back()));
  if (valueWidth < 1 || valueWidth % keyHeads != 0)
    return check.fail("a value width that is a multiple of the key and value heads, got " + check.text(v.back()) + " and " +
                      Twine(keyHeads));
  if (ArrayRef(k).drop_back() != ArrayRef(v).drop_back())
    return check.fail("keys and values of equal leading extents, got " + check.text(key) + " and " + check.text(value));
  if (ArrayRef(q).drop_back(2) != ArrayRef(k).drop_back(2))
    return check.fail("queries and keys of equal batch extents, got " + check.text(query) + " and " + check.text(key));
  if (Value mask = op.getMask()) {
    RankedTensorType type = tensorType(mask);
    SmallVector<AffineExpr> scores(ArrayRef(q).drop_back());
    scores.push_back(k[k.size() - 2]);
    SmallVector<AffineExpr> given = getExtents(type);
    bool fits = given.size() <= scores.size();
    for (size_t i = 0; fits && i < given.size(); ++i)
      fits = isConstant(given[i], 1) || given[i] == scores[scores.size() - given.size() + i];
    if (!fits)
      return check.fail("a mask that broadcasts to " + check.text(scores) + ", got " + check.text(type));
  }
  if (Value lengths = op.getLengths())
    if (getExtents(tensorType(lengths)) != ArrayRef(q).drop_back(2))
      return check.fail("lengths of the batch extents " + check.text(ArrayRef(q).drop_back(2)) + ", got " +
                        check.text(tensorType(lengths)));
  q.back() = getAffineConstantExpr(valueWidth / keyHeads * heads, context);
  types.push_back(resultType(op, q, query.getElementType()));
  return success();
}

KILN_INFER(TransposeOp) {
  Check check(location, "transpose", op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)))
    return failure();
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(x.getRank())))
    return check.fail("a permutation of the " + Twine(x.getRank()) + " axes, got [" +
                      llvm::join(llvm::map_range(permutation, [](int64_t axis) { return std::to_string(axis); }), ", ") + "]");
  SmallVector<AffineExpr> extents = getExtents(x), result;
  for (int64_t axis : permutation)
    result.push_back(extents[axis]);
  types.push_back(resultType(op, result, x.getElementType()));
  return success();
}

KILN_INFER(ConcatOp) {
  Check check(location, "concat", op.getOperands());
  if (op.getInputs().empty())
    return check.fail("at least one operand");
  SmallVector<RankedTensorType> inputs = llvm::map_to_vector(op.getInputs(), tensorType);
  if (failed(checkOperands(op, check)) || failed(check.sameElement(inputs)) || failed(check.axis(op.getAxis(), inputs[0])))
    return failure();
  SmallVector<AffineExpr> result = getExtents(inputs[0]);
  for (RankedTensorType input : ArrayRef(inputs).drop_front()) {
    if (failed(check.rank("operands", input, inputs[0].getRank())))
      return failure();
    SmallVector<AffineExpr> extents = getExtents(input);
    for (int64_t i = 0; i < input.getRank(); ++i)
      if (i != static_cast<int64_t>(op.getAxis()) && extents[i] != result[i])
        return check.fail("equal extents but along axis " + Twine(op.getAxis()) + ", got " + check.text(inputs[0]) + " and " +
                          check.text(input));
    result[op.getAxis()] = canonicalExtent(result[op.getAxis()] + extents[op.getAxis()]);
  }
  types.push_back(resultType(op, result, inputs[0].getElementType()));
  return success();
}

#undef KILN_INFER

} // namespace mlir::kiln
