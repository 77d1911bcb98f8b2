// SPDX-License-Identifier: Apache-2.0
//
// attention, over the loops of batch axes b, heads h, queries q, keys k and channels d or e:
//   1. scaled[b, h, q, d] = scale * log2(e) * query[b, q, h, d]
//   2. scores[b, h, q, k] = sum_d scaled[b, h, q, d] key[b, k, h, d], in units in which the weights are powers of 2
//   3. masked = scores + log2(e) * mask, the lowest number where the key does not count
//   4. maxima over k, weights = 2^(masked - maximum), sums over k
//   5. products[b, h, q, e] = sum_k weights[b, h, q, k] value[b, k, h, e]
//   6. result[b, q, h, e] = products * (1 / sums)
#include "compiler/transforms/KernelBuilder.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

/// Far below any score, and finite: a row without a key that counts becomes the mean of the values instead of NaN.
static constexpr double excludedScore = -3.0e38;
/// Masks count from here on, so that a key that a mask forbids is still before one that does not count.
static constexpr double lowestMask = -1.0e38;

namespace {

class AttentionDecomposer {
public:
  AttentionDecomposer(KernelBuilder &kernel, AttentionOp op) : kernel(kernel), op(op) {
    auto query = cast<RankedTensorType>(op.getQuery().getType()), key = cast<RankedTensorType>(op.getKey().getType()),
         value = cast<RankedTensorType>(op.getValue().getType());
    element = query.getElementType();
    batchRank = query.getRank() - 2;
    heads = op.getHeads();
    keyHeads = op.getNumKeyValueHeads();
    queryDepth = query.getDimSize(batchRank + 1) / heads;
    valueDepth = value.getDimSize(batchRank + 1) / keyHeads;
    rows = getExtents(query);
    rows.resize(batchRank + 1);
    rows.insert(rows.begin() + batchRank, constant(heads)); // b..., h, q
    queries = rows.back();
    keys = getExtents(key)[batchRank];
    for (Value operand : {op.getKey(), op.getValue()})
      kernel.prepareRepeatedReads(operand);
  }

  SmallVector<Value> run() {
    Value masked = createMasked(createScores(createScaled()));
    SmallVector<AffineExpr> loops = with(rows, keys);
    auto lowest =
        cast<TypedAttr>(FloatAttr::get(element, APFloat::getInf(cast<FloatType>(element).getFloatSemantics(), true)));
    Value maxima = kernel.createReduction(loops, batchRank + 2, lowest, [&](ElementBuilder &b, ValueRange max) {
      return SmallVector<Value>{arith::MaximumFOp::create(b, max[0], b.load(masked, b.loops()))};
    })[0];
    Value weights = kernel.createParallel(loops, element, [&](ElementBuilder &b) -> Value {
      Value max = b.load(maxima, rowOf(b));
      auto weight = math::Exp2Op::create(b, Value(arith::SubFOp::create(b, b.load(masked, b.loops()), max)));
      weight->setAttr(nonpositiveAttrName, b.getUnitAttr());
      return weight;
    });
    Value sums = kernel.createReduction(loops, batchRank + 2, zero(), [&](ElementBuilder &b, ValueRange sum) {
      return SmallVector<Value>{arith::AddFOp::create(b, sum[0], b.load(weights, b.loops()))};
    })[0];
    Value inverses = kernel.createParallel(rows, element, [&](ElementBuilder &b) -> Value {
      return arith::DivFOp::create(b, b.constant(element, 1), b.load(sums, b.loops()));
    });
    return {createResult(createProducts(weights), inverses)};
  }

private:
  AffineExpr constant(int64_t value) const { return getAffineConstantExpr(value, kernel.getContext()); }
  TypedAttr zero() const { return FloatAttr::get(element, 0); }

  static SmallVector<AffineExpr> with(ArrayRef<AffineExpr> extents, AffineExpr last) {
    SmallVector<AffineExpr> result(extents);
    result.push_back(last);
    return result;
  }

  Coordinates batch(ElementBuilder &b) const {
    Coordinates result = b.loops();
    result.resize(batchRank, b.loop(0));
    return result;
  }
  Coordinates rowOf(ElementBuilder &b) const {
    Coordinates result = b.loops();
    result.pop_back();
    return result;
  }

  /// An element of an operand [b..., t, heads * depth].
  Value readHead(ElementBuilder &b, Value operand, AffineExpr t, AffineExpr head, AffineExpr channel, int64_t depth) {
    Coordinates at = batch(b);
    at.push_back(t);
    at.push_back(b.simplify(head * depth + channel));
    return b.read(operand, at);
  }
  AffineExpr keyHead(ElementBuilder &b) const { return b.loop(batchRank).floorDiv(heads / keyHeads); }

  Value createScaled() {
    return kernel.createParallel(
        with(rows, constant(queryDepth)), element, [&](ElementBuilder &b) -> Value { // b..., h, q, d
          Value x =
              readHead(b, op.getQuery(), b.loop(batchRank + 1), b.loop(batchRank), b.loop(batchRank + 2), queryDepth);
          return arith::MulFOp::create(b, x,
                                       b.constant(element, op.getScale().convertToDouble() * llvm::numbers::log2e));
        });
  }

  Value createScores(Value scaled) {
    SmallVector<AffineExpr> loops = with(with(rows, keys), constant(queryDepth)); // b..., h, q, k, d
    return kernel.createReduction(loops, batchRank + 3, zero(), [&](ElementBuilder &b, ValueRange sum) {
      AffineExpr k = b.loop(batchRank + 2), d = b.loop(batchRank + 3);
      Coordinates at = b.loops();
      at.erase(at.begin() + batchRank + 2);
      Value x = b.load(scaled, at), y = readHead(b, op.getKey(), k, keyHead(b), d, queryDepth);
      return SmallVector<Value>{arith::AddFOp::create(b, sum[0], Value(arith::MulFOp::create(b, x, y)))};
    })[0];
  }

  Value createMasked(Value scores) {
    if (!op.getMask() && !op.getCausal() && !op.getLengths())
      return scores;
    return kernel.createParallel(with(rows, keys), element, [&](ElementBuilder &b) {
      Value score = b.load(scores, b.loops());
      if (op.getMask()) {
        Value mask = arith::MaximumFOp::create(b, readMask(b), b.constant(element, lowestMask));
        mask = arith::MulFOp::create(b, mask, b.constant(element, llvm::numbers::log2e));
        score = arith::AddFOp::create(b, score, mask);
      }
      if (Value counts = createCounts(b))
        score = arith::SelectOp::create(b, counts, score, b.constant(element, excludedScore));
      return score;
    });
  }

  /// The mask broadcasts to [b..., q, k].
  Value readMask(ElementBuilder &b) {
    auto type = cast<RankedTensorType>(op.getMask().getType());
    Coordinates at = batch(b);
    at.push_back(b.loop(batchRank + 1));
    at.push_back(b.loop(batchRank + 2));
    at.erase(at.begin(), at.end() - type.getRank());
    for (auto [coordinate, extent] : llvm::zip_equal(at, type.getShape()))
      if (extent == 1)
        coordinate = constant(0);
    return b.read(op.getMask(), at);
  }

  /// Whether the key counts for the query; null if all do.
  Value createCounts(ElementBuilder &b) {
    Value counts, k;
    if (op.getCausal() || op.getLengths())
      k = b.toIndex(b.loop(batchRank + 2));
    if (op.getCausal()) {
      Value limit = b.toIndex(b.loop(batchRank + 1));
      if (keys != queries)
        limit = arith::AddIOp::create(
            b, limit, Value(arith::SubIOp::create(b, kernel.createExtent(keys), kernel.createExtent(queries))));
      counts = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, k, limit);
    }
    if (op.getLengths()) {
      Value length = arith::IndexCastOp::create(b, b.getIndexType(), b.read(op.getLengths(), batch(b)));
      Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, k, length);
      counts = counts ? Value(arith::AndIOp::create(b, counts, isInside)) : isInside;
    }
    return counts;
  }

  Value createProducts(Value weights) {
    SmallVector<AffineExpr> loops = with(with(rows, constant(valueDepth)), keys); // b..., h, q, e, k
    return kernel.createReduction(loops, batchRank + 3, zero(), [&](ElementBuilder &b, ValueRange sum) {
      AffineExpr e = b.loop(batchRank + 2), k = b.loop(batchRank + 3);
      Coordinates at = b.loops();
      at.erase(at.begin() + batchRank + 2);
      Value x = b.load(weights, at), y = readHead(b, op.getValue(), k, keyHead(b), e, valueDepth);
      return SmallVector<Value>{arith::AddFOp::create(b, sum[0], Value(arith::MulFOp::create(b, x, y)))};
    })[0];
  }

  Value createResult(Value products, Value inverses) {
    SmallVector<AffineExpr> loops = llvm::to_vector(ArrayRef(rows).take_front(batchRank));
    loops.append({queries, constant(heads), constant(valueDepth)});
    return kernel.createParallel(loops, element, [&](ElementBuilder &b) -> Value {
      Coordinates row = batch(b);
      row.push_back(b.loop(batchRank + 1));
      row.push_back(b.loop(batchRank));
      Value inverse = b.load(inverses, row);
      row.push_back(b.loop(batchRank + 2));
      return arith::MulFOp::create(b, b.load(products, row), inverse);
    });
  }

  KernelBuilder &kernel;
  AttentionOp op;
  Type element;
  unsigned batchRank;
  int64_t heads, keyHeads, queryDepth, valueDepth;
  SmallVector<AffineExpr> rows;
  AffineExpr queries, keys;
};

} // namespace

/// The result has the heads as an axis of its own; a reshape of the op to that shape is the stored tensor.
SmallVector<Value> decomposeAttention(KernelBuilder &kernel, AttentionOp op) {
  SmallVector<Value> result = AttentionDecomposer(kernel, op).run();
  auto stored = cast<RankedTensorType>(result[0].getType());
  for (Operation *user : op->getUsers())
    if (isa<ReshapeOp>(user) && user->getResult(0).getType() == stored)
      kernel.setTensor(user->getResult(0), result[0]);
  return result;
}

Value evaluateAttention(ElementBuilder &b, AttentionOp op, ArrayRef<Coordinate> at) {
  Value result = b.kernel.getIntermediates(op)[0];
  int64_t depth = cast<RankedTensorType>(result.getType()).getShape().back();
  Coordinates split(at.drop_back());
  split.push_back(b.simplify(at.back().expr.floorDiv(depth)));
  split.push_back(b.simplify(at.back().expr % depth));
  return b.load(result, split);
}

} // namespace mlir::kiln
