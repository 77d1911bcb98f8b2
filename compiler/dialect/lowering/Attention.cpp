// SPDX-License-Identifier: Apache-2.0
//
// attention becomes kiln.kernel_attention, whose regions read elements of heads. attention_scores stores the products
// of queries and keys; scale and mask are applied where the products are read, so that they are fused into the
// epilogue.
#include "compiler/dialect/ExcludedScore.h"
#include "compiler/dialect/lowering/KeySelection.h"
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
        window(op.getWindow()), softcap(op.getSoftcap()), scale(op.getScale().convertToDouble()), heads(op.getHeads()),
        keyHeads(op.getNumKeyValueHeads()) {
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

  /// Returns c tanh(score / c), all times `unit`; the score itself if it is not limited.
  Value cap(ElementBuilder &b, Value score, double unit) const {
    if (!softcap)
      return score;
    const double c = softcap->convertToDouble() * unit;
    Value inner = arith::MulFOp::create(b, score, b.constant(element, 1 / c));
    return arith::MulFOp::create(b, Value(math::TanhOp::create(b, inner)), b.constant(element, c));
  }

  /// Returns the score plus mask at b..., h, q, k, both times `unit`.
  Value addMask(ElementBuilder &b, Value score, ArrayRef<Coordinate> at, double unit) const {
    if (!mask)
      return score;
    Value value = arith::MaximumFOp::create(b, readMask(b, at), b.constant(element, lowestMask));
    if (unit != 1)
      value = arith::MulFOp::create(b, value, b.constant(element, unit));
    return arith::AddFOp::create(b, score, value);
  }

  /// Returns the number of the sequence's keys; null: all.
  Value readLength(ElementBuilder &b, ArrayRef<Coordinate> at) const {
    return lengths ? b.read(lengths, at.take_front(batchRank)) : Value();
  }

  AffineExpr causalOffset() const { return isCausal ? KeySelection::offsetOfLast(queries, keys) : AffineExpr(); }

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

public:
  Value query, key, mask, lengths;
  bool isCausal;
  std::optional<int64_t> window;
  std::optional<APFloat> softcap;
  double scale;
  Type element; // of all intermediate values
  int64_t batchRank, heads, keyHeads, queryHeadDim;
  SmallVector<AffineExpr> rows;
  AffineExpr queries, keys;
};

/// Lowers attention to kiln.kernel_attention, over the loops b.., h, q, k, d, e.
class AttentionLowering : HeadReader {
public:
  AttentionLowering(KernelBuilder &kernel, AttentionOp op)
      : HeadReader(op), kernel(kernel), value(op.getValue()), sinks(op.getSinks()),
        stored(getElementTypeOrSelf(op.getType())) {
    valueHeadDim = cast<RankedTensorType>(value.getType()).getShape().back() / keyHeads;
    loops = rows;
    loops.append({keys, constant(queryHeadDim), constant(valueHeadDim)});
    for (Value operand : {key, value})
      kernel.prepareRepeatedReads(operand);
  }

  Value run() {
    ElementRegion regions[] = {createQuery(), createKey(), createValue(), createScore(), createWeight(), createSink()};
    SmallVector<AffineExpr> extents(ArrayRef(loops).take_front(batchRank));
    extents.append({queries, constant(heads), constant(valueHeadDim)});
    const unsigned symbols = kernel.getNumSymbols();
    Builder builder(kernel.getContext());
    auto mapOf = [&](ArrayRef<AffineExpr> values) {
      return AffineMapAttr::get(AffineMap::get(0, symbols, values, kernel.getContext()));
    };
    SmallVector<ArrayAttr> maps;
    for (const ElementRegion &region : regions)
      maps.push_back(builder.getAffineMapArrayAttr(region.maps));
    auto op = kernel.create<KernelAttentionOp>(
        getTensorType(extents, stored, symbols), regions[0].inputs, regions[1].inputs, regions[2].inputs,
        regions[3].inputs, regions[5].inputs, builder.getF64FloatAttr(scale),
        isCausal ? mapOf(causalOffset()) : AffineMapAttr(), window ? builder.getI64IntegerAttr(*window) : IntegerAttr(),
        mask || lengths ? builder.getUnitAttr() : UnitAttr(), mapOf(loops), maps[0], maps[1], maps[2], maps[3],
        sinks ? maps[5] : ArrayAttr());
    for (auto [region, made] : llvm::zip_equal(op->getRegions(), regions))
      if (made.block)
        region.push_back(made.block.release());
    return op.getResult();
  }

private:
  AffineExpr constant(int64_t number) const { return getAffineConstantExpr(number, kernel.getContext()); }
  AffineExpr keyLoop(ElementBuilder &b) const { return b.loop(batchRank + 2); }

  ElementRegion createElement(function_ref<Value(ElementBuilder &)> body) {
    return kernel.createRegion(loops, {}, [&](ElementBuilder &b, ValueRange) { return SmallVector<Value>{body(b)}; });
  }

  ElementRegion createQuery() {
    return createElement([&](ElementBuilder &b) {
      return readHead(b, query, b.loop(batchRank + 1), b.loop(batchRank), b.loop(batchRank + 3), queryHeadDim);
    });
  }

  ElementRegion createKey() {
    return createElement([&](ElementBuilder &b) {
      return readHead(b, key, keyLoop(b), keyHead(b), b.loop(batchRank + 3), queryHeadDim);
    });
  }

  ElementRegion createValue() {
    return createElement([&](ElementBuilder &b) {
      return readHead(b, value, keyLoop(b), keyHead(b), b.loop(batchRank + 4), valueHeadDim);
    });
  }

  ElementRegion createScore() {
    return kernel.createRegion(loops, element, [&](ElementBuilder &b, ValueRange score) {
      Coordinates at = b.loops();
      at.pop_back_n(2);
      SmallVector<Value> results{addMask(b, cap(b, score[0], llvm::numbers::log2e), at, llvm::numbers::log2e)};
      if (Value length = readLength(b, at))
        results.push_back(length);
      return results;
    });
  }

  ElementRegion createWeight() {
    return kernel.createRegion(loops, {element, element}, [&](ElementBuilder &b, ValueRange scoreAndMaximum) {
      Value difference = arith::SubFOp::create(b, scoreAndMaximum[0], scoreAndMaximum[1]);
      auto weight = math::Exp2Op::create(b, difference);
      weight->setAttr(nonpositiveAttrName, b.getUnitAttr());
      return SmallVector<Value>{weight};
    });
  }

  /// The weight of a sink: 2^(sink - maximum), at most so large that the inverse of the sum is a normal number. Weights
  /// of keys are then at most 2^-125 of the row's, which the error of 2^x covers.
  ElementRegion createSink() {
    if (!sinks)
      return {};
    return kernel.createRegion(loops, element, [&](ElementBuilder &b, ValueRange maximum) {
      Value sink = b.convert(b.read(sinks, Coordinate(b.loop(batchRank))), element);
      sink = arith::MulFOp::create(b, sink, b.constant(element, llvm::numbers::log2e));
      Value difference = arith::SubFOp::create(b, sink, maximum[0]);
      difference = arith::MinimumFOp::create(b, difference, b.constant(element, 125));
      return SmallVector<Value>{math::Exp2Op::create(b, difference)};
    });
  }

  KernelBuilder &kernel;
  Value value, sinks;
  Type stored; // element type of the result
  int64_t valueHeadDim;
  SmallVector<AffineExpr> loops;
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

/// Lengths range from no key to all keys.
template <class Op> static SmallVector<IndexOperand> lengthsOf(Op op) {
  if (!op.getLengths())
    return {};
  AffineExpr keys = getExtents(cast<RankedTensorType>(op.getKey().getType())).end()[-2];
  return {{op.getLengths(), 0, canonicalExtent(keys + 1)}};
}

//===- attention ---===//

/// The result has a separate head axis; a reshape of the op to that shape is the stored tensor.
SmallVector<Value> AttentionOp::decompose(KernelBuilder &kernel) {
  Value result = AttentionLowering(kernel, *this).run();
  for (Operation *user : (*this)->getUsers())
    if (isa<ReshapeOp>(user) && user->getResult(0).getType() == result.getType())
      kernel.setTensor(user->getResult(0), result);
  return {result};
}

Value AttentionOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Value result = b.kernel.getIntermediates(*this)[0];
  int64_t headDim = cast<RankedTensorType>(result.getType()).getShape().back();
  Coordinates split(at.drop_back());
  split.push_back(b.simplify(at.back().expr.floorDiv(headDim)));
  split.push_back(b.simplify(at.back().expr % headDim));
  return b.convert(b.load(result, split), getType().getElementType());
}

bool AttentionOp::collapseRows(RowCollapser &rows) {
  return collapseScores(*this, rows) && rows.markFull(getValue()) && (!getSinks() || rows.markWhole(getSinks()));
}

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
  Value score = arith::MulFOp::create(b, product, b.constant(reader.element, reader.scale));
  score = reader.addMask(b, reader.cap(b, score, /*unit=*/1), at, /*unit=*/1);
  AttentionOps ops;
  score = KeySelection{reader.queries, reader.keys, reader.causalOffset(), reader.window}.select(
      b, score, at[reader.batchRank + 1], at[reader.batchRank + 2], reader.readLength(b, at), ops);
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
