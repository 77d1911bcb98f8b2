// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of matrix products and of attention.
#include "compiler/dialect/ExcludedScore.h"
#include "compiler/dialect/gradients/GradientBuilder.h"

namespace mlir::kiln {

Value weightGradient(GradientBuilder &b, LinearOp product, Value x, Value dy) {
  Value rows = b.asMatrix(x), dyRows = b.asMatrix(dy);
  return product.getWeightOrder() == WeightOrder::OutIn
             ? b.create<MatmulOp>(b.transposeMatrix(dyRows), rows, /*transpose_b=*/false)
             : b.create<MatmulOp>(b.transposeMatrix(rows), dyRows, /*transpose_b=*/false);
}

/// dx = dy W.
KILN_GRADIENT(LinearOp) {
  const bool isOutIn = getWeightOrder() == WeightOrder::OutIn;
  Value dy = gradients[0];
  SmallVector<Value> result{
      b.create<LinearOp>(dy, getWeight(), Value(), Value(), isOutIn ? WeightOrder::InOut : WeightOrder::OutIn),
      weightGradient(b, *this, getX(), dy)};
  if (getBias())
    result.push_back(b.sumTo(b.asMatrix(dy), rankedType(getBias())));
  return result;
}

/// Returns for each row and group whether the row is in the group, as 0 or 1 of the rows' type: [N, groups]. A row's
/// group is the one that the most groups follow among those that end after the row.
static Value shareOfGroups(GradientBuilder &b, GroupedLinearOp op) {
  const int64_t count = op.getNumGroups();
  const AffineExpr groups = getAffineConstantExpr(count, op.getContext()),
                   one = getAffineConstantExpr(1, op.getContext()), rows = getExtents(rankedType(op.getX())).front();
  auto integers = [&](ArrayRef<int64_t> shape, ArrayRef<int32_t> values) {
    return b.create<ConstantOp>(
        DenseElementsAttr::get(RankedTensorType::get(shape, IntegerType::get(op.getContext(), 32)), values));
  };
  SmallVector<int32_t> numbers;
  for (int64_t group = 0; group < count; ++group)
    numbers.push_back(static_cast<int32_t>(count - 1 - group));
  Value following = integers({1, count}, numbers);
  Value row = b.reshape(b.create<PositionsOp>(op.getX(), 0), {rows, one});
  Value isBefore = b.create<LessOp>(row, b.reshape(op.getEnds(), {one, groups}));
  Value most = b.create<MaxOp>(b.where(isBefore, following, integers({}, {0})), 1);
  Value isIn = b.create<EqualOp>(b.reshape(most, {rows, one}), following);
  return b.where(isIn, b.number(op.getX(), 1), b.number(op.getX(), 0));
}

/// The gradients of the weights are one product of the rows with the other rows, those of other groups set to 0: it
/// costs as much as a linear of all groups.
KILN_GRADIENT(GroupedLinearOp) {
  const bool isOutIn = getWeightOrder() == WeightOrder::OutIn;
  Value dy = gradients[0], share = shareOfGroups(b, *this);
  const AffineExpr rows = getExtents(rankedType(getX())).front(), one = getAffineConstantExpr(1, getContext()),
                   groups = getAffineConstantExpr(getNumGroups(), getContext());
  // [N, groups * width]: the row at the place of its group, and zeros at all others.
  auto spread = [&](Value x) {
    const AffineExpr width = getExtents(rankedType(x)).back();
    Value product = b.mul(b.reshape(share, {rows, groups, one}), b.reshape(x, {rows, one, width}));
    return b.reshape(product, {rows, groups * width});
  };
  Value spreadRows = spread(isOutIn ? dy : getX());
  SmallVector<Value> result{
      b.create<GroupedLinearOp>(dy, getWeight(), getEnds(), Value(), isOutIn ? WeightOrder::InOut : WeightOrder::OutIn),
      b.create<MatmulOp>(b.transposeMatrix(spreadRows), isOutIn ? getX() : dy, /*transpose_b=*/false), Value()};
  if (getBias())
    result.push_back(b.create<SumOp>(isOutIn ? spreadRows : spread(dy), 0));
  return result;
}

/// A matrix that all batches share gets its gradient from one GEMM over the rows of all batches, not from one per
/// batch.
KILN_GRADIENT(MatmulOp) {
  Value dy = gradients[0], a = getA();
  Value ofA = b.sumTo(b.create<MatmulOp>(dy, getB(), !getTransposeB()), rankedType(a));
  if (rankedType(getB()).getRank() == 2)
    a = b.asMatrix(a), dy = b.asMatrix(dy);
  Value ofB = getTransposeB() ? b.create<MatmulOp>(b.transposeMatrix(dy), a, false)
                              : b.create<MatmulOp>(b.transposeMatrix(a), dy, false);
  return {ofA, b.sumTo(ofB, rankedType(getB()))};
}

namespace {

/// Attention split by heads: queries [..., G, H / G, T, D], keys and values [..., G, 1, T, D], for G key heads.
class Heads {
public:
  Heads(GradientBuilder &b, int64_t heads, int64_t groups) : b(b), heads(heads), groups(groups) {}

  /// [..., T, count * shared * D] to [..., count, shared, T, D]; for keys `shared` is 1.
  Value split(Value x, int64_t shared) {
    SmallVector<AffineExpr> extents = getExtents(rankedType(x));
    const AffineExpr width = extents.pop_back_val().floorDiv(groups * shared);
    llvm::append_range(extents, ArrayRef{constant(x, groups), constant(x, shared), width});
    const int64_t rank = static_cast<int64_t>(extents.size());
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(rank));
    std::rotate(permutation.end() - 4, permutation.end() - 3, permutation.end() - 1);
    return b.transpose(b.reshape(x, extents), permutation);
  }
  Value splitQueries(Value x) { return split(x, heads / groups); }
  Value splitKeys(Value x) { return split(x, 1); }
  /// The inverse of split, as a value of the type of `like`.
  Value join(Value x, Value like) {
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(rankedType(x).getRank()));
    std::rotate(permutation.end() - 4, permutation.end() - 2, permutation.end() - 1);
    return b.reshape(b.transpose(x, permutation), getExtents(rankedType(like)));
  }
  /// [..., H, Tq, Tk] to [..., G, H / G, Tq, Tk].
  Value splitScores(Value scores) {
    SmallVector<AffineExpr> extents = getExtents(rankedType(scores));
    auto *at = extents.end() - 3;
    *at = constant(scores, groups);
    extents.insert(at + 1, constant(scores, heads / groups));
    return b.reshape(scores, extents);
  }
  Value joinScores(Value scores) {
    SmallVector<AffineExpr> extents = getExtents(rankedType(scores));
    extents.erase(extents.end() - 3);
    extents.end()[-3] = constant(scores, heads);
    return b.reshape(scores, extents);
  }

  /// Returns the gradients of query, key and, if there is one, mask from that of the scores, [..., H, Tq, Tk].
  template <class Op> SmallVector<Value> ofScores(Op op, Value ds) {
    Value parts = splitScores(beforeCap(op, ds)), keys = splitKeys(op.getKey()), queries = splitQueries(op.getQuery());
    const double scale = op.getScale().convertToDouble();
    Value dq = b.scale(b.create<MatmulOp>(parts, keys, false), scale);
    Value dk = b.scale(b.create<MatmulOp>(b.transposeMatrix(parts), queries, false), scale);
    SmallVector<Value> result{join(dq, op.getQuery()), join(b.sumTo(dk, rankedType(keys)), op.getKey())};
    if (op.getMask())
      result.push_back(ofMask(ds, op.getQuery(), op.getMask()));
    return result;
  }

  /// Returns the sum of the keys' weights, [..., H, Tq, 1], from the scores and their softmax p: sigmoid(l - sink),
  /// where l = log(sum(e^scores)) = max(scores) - log(max(p)).
  Value shareOfKeys(Value scores, Value p, Value sinks) {
    const int64_t last = rankedType(scores).getRank() - 1;
    auto largest = [&](Value x) { return b.keepAxis(b.create<MaxOp>(x, last), x, last); };
    Value l = b.sub(largest(scores), b.create<LogOp>(largest(p)));
    return b.create<SigmoidOp>(
        b.sub(l, b.reshape(sinks, {constant(sinks, heads), constant(sinks, 1), constant(sinks, 1)})));
  }

  /// Returns the gradient of the sinks from that of each row's, [..., H, Tq, 1].
  Value ofSinks(Value rows, Value sinks) {
    SmallVector<AffineExpr> perHead{constant(sinks, heads), constant(sinks, 1), constant(sinks, 1)};
    return b.reshape(b.sumTo(rows, b.typeOf(perHead, sinks)), getExtents(rankedType(sinks)));
  }

  /// Returns where scores belong to keys that are excluded or masked out; f16 scores are clamped.
  Value areOut(Value scores) {
    const bool isF16 = rankedType(scores).getElementType().isF16();
    return b.create<LessEqualOp>(scores, b.number(scores, isF16 ? -65504 : largestOfNone));
  }

private:
  /// Returns the gradient of the scores before they are limited to c tanh(scores / c): times 1 - tanh^2.
  template <class Op> Value beforeCap(Op op, Value ds) {
    if (!op.getSoftcap())
      return ds;
    Value plain = b.create<AttentionScoresOp>(op.getQuery(), op.getKey(), Value(), Value(), op.getHeadsAttr(),
                                              op.getKeyValueHeadsAttr(), op.getScaleAttr(), UnitAttr(), IntegerAttr(),
                                              FloatAttr());
    Value tanh = b.create<TanhOp>(b.scale(plain, 1 / op.getSoftcap()->convertToDouble()));
    return b.mul(ds, b.sub(b.number(tanh, 1), b.mul(tanh, tanh)));
  }

  static AffineExpr constant(Value like, int64_t value) { return getAffineConstantExpr(value, like.getContext()); }

  /// A mask has a head axis if its rank exceeds that of the queries.
  Value ofMask(Value ds, Value query, Value mask) {
    if (rankedType(mask).getRank() <= rankedType(query).getRank())
      ds = b.create<SumOp>(ds, rankedType(ds).getRank() - 3);
    return b.sumTo(ds, rankedType(mask));
  }

  GradientBuilder &b;
  int64_t heads, groups;
};

} // namespace

/// Recomputes the attention weights P = softmax(S): dV = P^T dY, dP = dY V^T, dS = P (dP - sum(dP P)).
KILN_GRADIENT(AttentionOp) {
  Heads heads(b, getHeads(), getNumKeyValueHeads());
  Value scores =
      b.create<AttentionScoresOp>(getQuery(), getKey(), getMask(), getLengths(), getHeadsAttr(), getKeyValueHeadsAttr(),
                                  getScaleAttr(), getCausalAttr(), getWindowAttr(), getSoftcapAttr());
  const int64_t last = rankedType(scores).getRank() - 1;
  Value p = b.create<SoftmaxOp>(scores, last), share;
  if (getSinks()) // the weights of the keys are the softmax of their scores times their share of all weights
    p = b.mul(p, share = heads.shareOfKeys(scores, p, getSinks()));
  if (getMask() || getLengths()) // a row without a key has no weights
    p = b.where(heads.areOut(scores), b.number(p, 0), p);
  Value parts = heads.splitScores(p);
  Value dy = heads.splitQueries(gradients[0]), values = heads.splitKeys(getValue());
  Value dv = b.create<MatmulOp>(b.transposeMatrix(parts), dy, false);
  Value dp = heads.joinScores(b.create<MatmulOp>(dy, values, /*transpose_b=*/true));
  Value mean = b.sumKept(b.mul(dp, p), last);
  Value ds = b.mul(p, b.sub(dp, mean));
  SmallVector<Value> result = heads.ofScores(*this, ds);
  result.insert(result.begin() + 2, heads.join(b.sumTo(dv, rankedType(values)), getValue()));
  if (getSinks())
    result.push_back(heads.ofSinks(b.mul(b.sub(share, b.number(share, 1)), mean), getSinks()));
  if (getLengths())
    result.push_back({});
  return result;
}

/// The score of an excluded key is a constant.
KILN_GRADIENT(AttentionScoresOp) {
  Heads heads(b, getHeads(), getNumKeyValueHeads());
  SmallVector<Value> result =
      heads.ofScores(*this, b.where(heads.areOut(getResult()), b.number(gradients[0], 0), gradients[0]));
  if (getLengths())
    result.push_back({});
  return result;
}

} // namespace mlir::kiln
