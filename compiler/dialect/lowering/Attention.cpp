// SPDX-License-Identifier: Apache-2.0
//
// attention, over the loops of batch axes b, heads h, queries q, keys k and channels d or e:
//   1. scaled[b, h, q, d] = scale * log2(e) * query[b, q, h, d]
//   2. scores[b, h, q, k] = sum_d scaled[b, h, q, d] key[b, k, h, d], in log2 units
//   3. masked = scores + log2(e) * mask, the lowest number for excluded keys
//   4. maxima over k, weights = 2^(masked - maximum), sums over k
//   5. products[b, h, q, e] = sum_k weights[b, h, q, k] value[b, k, h, e]
//   6. result[b, q, h, e] = products * (1 / sums)
//
// attention_scores stores the products of queries and keys; scale and mask are applied where the products are read, so
// that they are fused into the epilogue.
#include "compiler/dialect/ExcludedScore.h"
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

namespace {

/// Shared by attention and attention_scores: reading heads, masks, and the keys that are excluded.
class HeadReader {
public:
  template <class Op>
  explicit HeadReader(Op op)
      : query(op.getQuery()), key(op.getKey()), mask(op.getMask()), lengths(op.getLengths()), isCausal(op.getCausal()),
        scale(op.getScale().convertToDouble()), heads(op.getHeads()), keyHeads(op.getNumKeyValueHeads()) {
    auto type = cast<RankedTensorType>(query.getType());
    element = op.getAccumulatorType();
    batchRank = type.getRank() - 2;
    queryHeadDim = type.getShape().back() / heads;
    rows = getExtents(type);
    queries = rows[batchRank];
    rows.resize(batchRank + 1);
    rows.insert(rows.begin() + batchRank, getAffineConstantExpr(heads, query.getContext())); // b..., h, q
    keys = getExtents(cast<RankedTensorType>(key.getType()))[batchRank];
  }

  Coordinates batch(ElementBuilder &b) const {
    Coordinates result = b.loops();
    result.resize(batchRank, b.loop(0));
    return result;
  }

  /// Reads an element of an operand [b..., t, heads * headDim] in the accumulator type.
  Value readHead(ElementBuilder &b, Value operand, AffineExpr t, AffineExpr head, AffineExpr channel,
                 int64_t headDim) const {
    Coordinates at = batch(b);
    at.push_back(t);
    at.push_back(b.simplify(head * headDim + channel));
    return b.convert(b.read(operand, at), element);
  }
  AffineExpr keyHead(ElementBuilder &b) const { return b.loop(batchRank).floorDiv(heads / keyHeads); }

  /// Accumulates the product of a query's element and the key's, in the loops b..., h, q, k, d.
  SmallVector<Value> addProduct(ElementBuilder &b, Value sum, Value x) const {
    Value y = readHead(b, key, b.loop(batchRank + 2), keyHead(b), b.loop(batchRank + 3), queryHeadDim);
    return {arith::AddFOp::create(b, sum, Value(arith::MulFOp::create(b, x, y)))};
  }

  bool hasMask() const { return mask || isCausal || lengths; }

  /// Returns the score plus mask at b..., h, q, k, both times `unit`; the lowest score if the key is excluded.
  Value createMasked(ElementBuilder &b, Value score, ArrayRef<Coordinate> at, double unit) const {
    if (mask) {
      Value value = arith::MaximumFOp::create(b, readMask(b, at), b.constant(element, lowestMask));
      if (unit != 1)
        value = arith::MulFOp::create(b, value, b.constant(element, unit));
      score = arith::AddFOp::create(b, score, value);
    }
    if (Value counts = createCounts(b, at))
      score = arith::SelectOp::create(b, counts, score, b.constant(element, excludedScore));
    return score;
  }

private:
  /// The mask broadcasts to [b..., q, k], or has all axes of [b..., h, q, k].
  Value readMask(ElementBuilder &b, ArrayRef<Coordinate> scoreAt) const {
    auto type = cast<RankedTensorType>(mask.getType());
    Coordinates at(scoreAt);
    if (type.getRank() < static_cast<int64_t>(at.size())) {
      at.erase(at.begin() + batchRank);
      at.erase(at.begin(), at.end() - type.getRank());
    }
    for (auto [coordinate, extent] : llvm::zip_equal(at, type.getShape()))
      if (extent == 1)
        coordinate = getAffineConstantExpr(0, mask.getContext());
    return b.convert(b.read(mask, at), element);
  }

  /// Whether the query attends to the key; null if it attends to all keys.
  Value createCounts(ElementBuilder &b, ArrayRef<Coordinate> at) const {
    Value counts, k;
    if (isCausal || lengths)
      k = b.toIndex(at[batchRank + 2]);
    if (isCausal) {
      Value limit = b.toIndex(at[batchRank + 1]);
      if (keys != queries)
        limit = arith::AddIOp::create(
            b, limit, Value(arith::SubIOp::create(b, b.kernel.createExtent(keys), b.kernel.createExtent(queries))));
      counts = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, k, limit);
    }
    if (lengths) {
      Value length = arith::IndexCastOp::create(b, b.getIndexType(), b.read(lengths, at.take_front(batchRank)));
      Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, k, length);
      counts = counts ? Value(arith::AndIOp::create(b, counts, isInside)) : isInside;
    }
    return counts;
  }

public:
  Value query, key, mask, lengths;
  bool isCausal;
  double scale;
  Type element; // of all intermediate values
  int64_t batchRank, heads, keyHeads, queryHeadDim;
  SmallVector<AffineExpr> rows;
  AffineExpr queries, keys;
};

class AttentionDecomposer : HeadReader {
public:
  AttentionDecomposer(KernelBuilder &kernel, AttentionOp op)
      : HeadReader(op), kernel(kernel), value(op.getValue()), stored(getElementTypeOrSelf(op.getType())) {
    valueHeadDim = cast<RankedTensorType>(value.getType()).getShape().back() / keyHeads;
    for (Value operand : {key, value})
      kernel.prepareRepeatedReads(operand);
  }

  SmallVector<Value> run() {
    Value masked = createMaskedScores(createScores(createScaled()));
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

  Coordinates rowOf(ElementBuilder &b) const {
    Coordinates result = b.loops();
    result.pop_back();
    return result;
  }

  Value createScaled() {
    return kernel.createParallel(
        with(rows, constant(queryHeadDim)), element, [&](ElementBuilder &b) -> Value { // b..., h, q, d
          Value x = readHead(b, query, b.loop(batchRank + 1), b.loop(batchRank), b.loop(batchRank + 2), queryHeadDim);
          return arith::MulFOp::create(b, x, b.constant(element, scale * llvm::numbers::log2e));
        });
  }

  Value createScores(Value scaled) {
    SmallVector<AffineExpr> loops = with(with(rows, keys), constant(queryHeadDim)); // b..., h, q, k, d
    return kernel.createReduction(loops, batchRank + 3, zero(), [&](ElementBuilder &b, ValueRange sum) {
      Coordinates at = b.loops();
      at.erase(at.begin() + batchRank + 2);
      return addProduct(b, sum[0], b.load(scaled, at));
    })[0];
  }

  Value createMaskedScores(Value scores) {
    if (!hasMask())
      return scores;
    return kernel.createParallel(with(rows, keys), element, [&](ElementBuilder &b) {
      return createMasked(b, b.load(scores, b.loops()), b.loops(), llvm::numbers::log2e);
    });
  }

  Value createProducts(Value weights) {
    SmallVector<AffineExpr> loops = with(with(rows, constant(valueHeadDim)), keys); // b..., h, q, e, k
    return kernel.createReduction(loops, batchRank + 3, zero(), [&](ElementBuilder &b, ValueRange sum) {
      AffineExpr e = b.loop(batchRank + 2), k = b.loop(batchRank + 3);
      Coordinates at = b.loops();
      at.erase(at.begin() + batchRank + 2);
      Value x = b.load(weights, at), y = readHead(b, value, k, keyHead(b), e, valueHeadDim);
      return SmallVector<Value>{arith::AddFOp::create(b, sum[0], Value(arith::MulFOp::create(b, x, y)))};
    })[0];
  }

  Value createResult(Value products, Value inverses) {
    SmallVector<AffineExpr> loops = llvm::to_vector(ArrayRef(rows).take_front(batchRank));
    loops.append({queries, constant(heads), constant(valueHeadDim)});
    return kernel.createParallel(loops, stored, [&](ElementBuilder &b) -> Value {
      Coordinates row = batch(b);
      row.push_back(b.loop(batchRank + 1));
      row.push_back(b.loop(batchRank));
      Value inverse = b.load(inverses, row);
      row.push_back(b.loop(batchRank + 2));
      return arith::MulFOp::create(b, b.load(products, row), inverse);
    });
  }

  KernelBuilder &kernel;
  Value value;
  Type stored; // element type of the result
  int64_t valueHeadDim;
};

} // namespace

/// The mask is shared by all heads and batches, or has the batch axes.
template <class Op> static bool collapseScores(Op op, RowCollapser &rows) {
  int64_t batchRank = rows.rankOf(op.getQuery()) - 2;
  Value mask = op.getMask(), lengths = op.getLengths();
  if (mask && rows.rankOf(mask) == batchRank + 3 && !rows.markFull(mask))
    return false;
  return rows.axes <= batchRank && rows.markFull(op.getQuery()) && rows.markFull(op.getKey()) &&
         (!lengths || rows.markFull(lengths)) &&
         (!mask ||
          (rows.rankOf(mask) <= 2 ? rows.markWhole(mask) : rows.rankOf(mask) >= batchRank + 2 && rows.markFull(mask)));
}

/// Counts `products` multiply-adds per query and key, without skipping masked ones.
template <class Op> static AffineExpr countPairs(Op op, AffineExpr products) {
  SmallVector<AffineExpr> factors = getExtents(cast<RankedTensorType>(op.getQuery().getType())),
                          keys = getExtents(cast<RankedTensorType>(op.getKey().getType()));
  factors.back() = keys.end()[-2];
  factors.append({products, getAffineConstantExpr(2, op.getContext())});
  return getProduct(factors, op.getContext());
}

static AffineExpr widthOf(Value tensor) { return getExtents(cast<RankedTensorType>(tensor.getType())).back(); }

/// Lengths range from one key to all keys.
template <class Op> static SmallVector<IndexOperand> lengthsOf(Op op) {
  if (!op.getLengths())
    return {};
  AffineExpr keys = getExtents(cast<RankedTensorType>(op.getKey().getType())).end()[-2];
  return {{op.getLengths(), 1, canonicalExtent(keys + 1)}};
}

//===- attention ---===//

/// The result has a separate head axis; a reshape of the op to that shape is the stored tensor.
SmallVector<Value> AttentionOp::decompose(KernelBuilder &kernel) {
  SmallVector<Value> result = AttentionDecomposer(kernel, *this).run();
  auto stored = cast<RankedTensorType>(result[0].getType());
  for (Operation *user : (*this)->getUsers())
    if (isa<ReshapeOp>(user) && user->getResult(0).getType() == stored)
      kernel.setTensor(user->getResult(0), result[0]);
  return result;
}

Value AttentionOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Value result = b.kernel.getIntermediates(*this)[0];
  int64_t headDim = cast<RankedTensorType>(result.getType()).getShape().back();
  Coordinates split(at.drop_back());
  split.push_back(b.simplify(at.back().expr.floorDiv(headDim)));
  split.push_back(b.simplify(at.back().expr % headDim));
  return b.convert(b.load(result, split), getType().getElementType());
}

bool AttentionOp::collapseRows(RowCollapser &rows) { return collapseScores(*this, rows) && rows.markFull(getValue()); }

SmallVector<IndexOperand> AttentionOp::getIndexOperands() { return lengthsOf(*this); }

AffineExpr AttentionOp::getFlops() {
  return countPairs(*this, canonicalExtent(widthOf(getQuery()) + widthOf(getResult())));
}

//===- attention_scores ---===//

SmallVector<Value> AttentionScoresOp::decompose(KernelBuilder &kernel) {
  HeadReader reader(*this);
  for (Value operand : {reader.query, reader.key})
    kernel.prepareRepeatedReads(operand);
  SmallVector<AffineExpr> loops(reader.rows); // b..., h, q, k, d
  loops.append({reader.keys, getAffineConstantExpr(reader.queryHeadDim, kernel.getContext())});
  int64_t rank = reader.batchRank;
  return kernel.createReduction(
      loops, rank + 3, TypedAttr(FloatAttr::get(reader.element, 0)), [&](ElementBuilder &b, ValueRange sum) {
        Value x =
            reader.readHead(b, reader.query, b.loop(rank + 1), b.loop(rank), b.loop(rank + 3), reader.queryHeadDim);
        return reader.addProduct(b, sum[0], x);
      });
}

Value AttentionScoresOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  HeadReader reader(*this);
  Value product = b.load(b.kernel.getIntermediates(*this)[0], at);
  Value score = reader.createMasked(b, arith::MulFOp::create(b, product, b.constant(reader.element, reader.scale)), at,
                                    /*unit=*/1);
  auto type = cast<FloatType>(getElementTypeOrSelf(getResult()));
  if (isHalfFloat(type)) { // keep scores finite in f16
    const double largest = APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
    score = arith::MinimumFOp::create(b, score, b.constant(reader.element, largest));
    score = arith::MaximumFOp::create(b, score, b.constant(reader.element, -largest));
  }
  return b.convert(score, type);
}

bool AttentionScoresOp::collapseRows(RowCollapser &rows) { return collapseScores(*this, rows); }

SmallVector<IndexOperand> AttentionScoresOp::getIndexOperands() { return lengthsOf(*this); }

AffineExpr AttentionScoresOp::getFlops() { return countPairs(*this, widthOf(getQuery())); }

} // namespace mlir::kiln
