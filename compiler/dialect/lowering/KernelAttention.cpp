// SPDX-License-Identifier: Apache-2.0
//
// The decomposition of kernel_attention, over the loops of batch axes b, heads h, queries q, keys k and channels d or
// e:
//   1. scaled[b, h, q, d] = scale * log2(e) * query[b, h, q, d]
//   2. scores[b, h, q, k] = sum_d scaled[b, h, q, d] key[b, h, k, d], in log2 units
//   3. masked = score(scores), the lowest number for excluded keys
//   4. maxima over k, weights = 2^(masked - maximum), sums over k
//   5. products[b, h, q, e] = sum_k weights[b, h, q, k] value[b, h, k, e]
//   6. result[b, q, h, e] = products * (1 / sums), or with a sink 1 / (sums + its weight); 0 for rows without a key
#include "compiler/dialect/ExcludedScore.h"
#include "compiler/dialect/lowering/KeySelection.h"
#include "mlir/IR/OperationSupport.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

Value KeySelection::select(ElementBuilder &b, Value score, const Coordinate &query, const Coordinate &key, Value length,
                           AttentionOps &ops) const {
  if (!causalOffset && !length)
    return score;
  Value counts, k = b.toIndex(key);
  if (causalOffset) {
    Value limit = b.toIndex(query);
    const bool grows = limit.getDefiningOp<linalg::IndexOp>() != nullptr;
    if (causalOffset != getAffineConstantExpr(0, b.getContext())) {
      Value offset = causalOffset == offsetOfLast(queries, keys)
                         ? Value(arith::SubIOp::create(b, b.kernel.createExtent(keys), b.kernel.createExtent(queries)))
                         : b.kernel.createExtent(causalOffset);
      limit = arith::AddIOp::create(b, limit, offset);
    }
    counts = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, k, limit);
    ops.limits.push_back({limit, /*isInclusive=*/true, grows});
    if (window) {
      ops.beforeWindow = arith::SubIOp::create(b, limit, b.kernel.createConstant(b.getIndexType(), double(*window)));
      Value isNear = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, k, ops.beforeWindow);
      counts = arith::AndIOp::create(b, counts, isNear);
    }
  }
  if (length) {
    Value limit = arith::IndexCastOp::create(b, b.getIndexType(), length);
    Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, k, limit);
    counts = counts ? Value(arith::AndIOp::create(b, counts, isInside)) : isInside;
    ops.limits.insert(ops.limits.begin(), KeyLimit{limit}); // limits that are the same for all queries come first
  }
  if (!k.getDefiningOp<linalg::IndexOp>())
    ops.limits.clear(); // a single key is needed even if it is excluded
  return arith::SelectOp::create(b, counts, score, b.constant(score.getType(), excludedScore));
}

namespace {

class AttentionDecomposer {
public:
  explicit AttentionDecomposer(KernelAttentionOp op)
      : op(op), kernel(op), batchRank(op.getBatchRank()), loops(op.getLoopExtents()),
        element(op.getWeightElement().front().getArgument(0).getType()) {}

  AttentionOps run() {
    found.readsMaxima = op.hasSink() || op.getMayBeEmpty();
    found.scaled = asGeneric(createScaled());
    found.scores = asGeneric(createScores());
    if (op.getCausalOffset() || !isIdentity(op.getScoreElement()))
      found.masked = asGeneric(createMasked());
    found.maxima = asGeneric(createMaxima());
    found.weights = asGeneric(createWeights());
    found.sums = asGeneric(createSums());
    found.inverses = asGeneric(createInverses());
    found.products = asGeneric(createProducts());
    found.result = asGeneric(createResult());
    return std::move(found);
  }

private:
  static linalg::GenericOp asGeneric(Value value) { return value.getDefiningOp<linalg::GenericOp>(); }
  static Value valueOf(linalg::GenericOp from) { return from.getResult(0); }

  /// Whether the region yields its last argument and nothing else.
  static bool isIdentity(Region &region) {
    return region.front().getTerminator()->getOperands() == ValueRange{region.front().getArguments().back()};
  }

  TypedAttr zero() const { return FloatAttr::get(element, 0); }

  /// Returns the extents of the loops b.., h, q and those of these further loops.
  SmallVector<AffineExpr> rowsWith(ArrayRef<unsigned> more) const {
    SmallVector<AffineExpr> extents(loops.take_front(batchRank + 2));
    for (unsigned loop : more)
      extents.push_back(loops[batchRank + loop]);
    return extents;
  }
  static constexpr unsigned k = 2, d = 3, e = 4; // numbers of loops after the batch axes

  /// Returns the numbers of the loops in an op over b.., h, q, then k, d and e at these places.
  SmallVector<unsigned> loopsAt(unsigned ofK, unsigned ofD, unsigned ofE) const {
    SmallVector<unsigned> result = llvm::to_vector(llvm::seq(batchRank + 2));
    result.append({batchRank + ofK, batchRank + ofD, batchRank + ofE});
    return result;
  }

  static Coordinates rowOf(ElementBuilder &b) {
    Coordinates result = b.loops();
    result.pop_back();
    return result;
  }
  /// Returns the loops without the first one after the rows.
  Coordinates withoutNext(ElementBuilder &b) const {
    Coordinates result = b.loops();
    result.erase(result.begin() + batchRank + 2);
    return result;
  }

  Value createScaled() {
    return kernel.createParallel(rowsWith({d}), element, [&](ElementBuilder &b) -> Value {
      Value x = b.copyRegion(op.getQueryElement(), op.getQuery(), op.getQueryMaps(), loopsAt(2, 2, 2))[0];
      return arith::MulFOp::create(b, x, b.constant(element, op.getScale().convertToDouble() * llvm::numbers::log2e));
    });
  }

  /// Compares floats, of which none is assumed not to be NaN.
  static Value compare(ElementBuilder &b, arith::CmpFPredicate predicate, Value x, Value y) {
    auto comparison = arith::CmpFOp::create(b, predicate, x, y);
    comparison->setAttr(strictAttrName, b.getUnitAttr());
    return comparison;
  }

  static SmallVector<Value> addProduct(ElementBuilder &b, Value sum, Value x, Value y) {
    return {arith::AddFOp::create(b, sum, Value(arith::MulFOp::create(b, x, y)))};
  }

  Value createScores() { // b..., h, q, k, d
    return kernel.createReduction(rowsWith({k, d}), batchRank + 3, zero(), [&](ElementBuilder &b, ValueRange sum) {
      Value x = b.load(valueOf(found.scaled), withoutNext(b));
      Value y = b.copyRegion(op.getKeyElement(), op.getKey(), op.getKeyMaps(), loopsAt(2, 3, 3))[0];
      return addProduct(b, sum[0], x, y);
    })[0];
  }

  Value createMasked() {
    const KeySelection selection{loops[batchRank + 1], loops[batchRank + 2], op.getCausalOffset(), op.getWindow()};
    return kernel.createParallel(rowsWith({k}), element, [&](ElementBuilder &b) {
      const Coordinates at = b.loops();
      Value plain = b.load(valueOf(found.scores), at);
      SmallVector<Value> results =
          b.copyRegion(op.getScoreElement(), op.getScore(), op.getScoreMaps(), loopsAt(2, 2, 2), plain);
      Value masked = selection.select(b, results[0], at[batchRank + 1], at[batchRank + 2],
                                      results.size() > 1 ? results[1] : Value(), found);
      found.isPlainWithin = results[0] == plain && !found.limits.empty() && !op.getWindow();
      return masked;
    });
  }

  Value createMaxima() {
    const TypedAttr lowest =
        FloatAttr::get(element, APFloat::getInf(cast<FloatType>(element).getFloatSemantics(), true));
    return kernel.createReduction(rowsWith({k}), batchRank + 2, lowest, [&](ElementBuilder &b, ValueRange max) {
      Value score = b.load(valueOf(found.lastScores()), b.loops());
      return SmallVector<Value>{arith::MaximumFOp::create(b, max[0], score)};
    })[0];
  }

  Value createWeights() {
    return kernel.createParallel(rowsWith({k}), element, [&](ElementBuilder &b) {
      Value maximum = b.load(valueOf(found.maxima), rowOf(b));
      Value score = b.load(valueOf(found.lastScores()), b.loops());
      return b.copyRegion(op.getWeightElement(), {}, b.getArrayAttr({}), loopsAt(2, 2, 2), {score, maximum})[0];
    });
  }

  Value createSums() {
    return kernel.createReduction(rowsWith({k}), batchRank + 2, zero(), [&](ElementBuilder &b, ValueRange sum) {
      Value weight = b.load(valueOf(found.weights), b.loops());
      return SmallVector<Value>{arith::AddFOp::create(b, sum[0], weight)};
    })[0];
  }

  Value createInverses() {
    return kernel.createParallel(rowsWith({}), element, [&](ElementBuilder &b) -> Value {
      Value sum = b.load(valueOf(found.sums), b.loops());
      Value maximum = found.readsMaxima ? b.load(valueOf(found.maxima), b.loops()) : Value();
      if (op.hasSink()) {
        Value weight = b.copyRegion(op.getSinkElement(), op.getSink(), *op.getSinkMaps(), loopsAt(0, 0, 0), maximum)[0];
        sum = arith::AddFOp::create(b, sum, weight);
      }
      Value inverse = arith::DivFOp::create(b, b.constant(element, 1), sum);
      if (!op.getMayBeEmpty())
        return inverse;
      Value none = b.constant(element, largestOfNone * llvm::numbers::log2e);
      Value isEmpty = compare(b, arith::CmpFPredicate::OLE, maximum, none);
      return arith::SelectOp::create(b, isEmpty, b.constant(element, 0), inverse);
    });
  }

  Value createProducts() { // b..., h, q, e, k
    return kernel.createReduction(rowsWith({e, k}), batchRank + 3, zero(), [&](ElementBuilder &b, ValueRange sum) {
      Value x = b.load(valueOf(found.weights), withoutNext(b));
      Value y = b.copyRegion(op.getValueElement(), op.getValue(), op.getValueMaps(), loopsAt(3, 2, 2))[0];
      return addProduct(b, sum[0], x, y);
    })[0];
  }

  Value createResult() { // b..., q, h, e
    SmallVector<AffineExpr> extents = rowsWith({e});
    std::swap(extents[batchRank], extents[batchRank + 1]);
    return kernel.createParallel(extents, op.getType().getElementType(), [&](ElementBuilder &b) -> Value {
      Coordinates at = b.loops();
      std::swap(at[batchRank], at[batchRank + 1]);
      Value inverse = b.load(valueOf(found.inverses), ArrayRef(at).drop_back());
      Value result = arith::MulFOp::create(b, b.load(valueOf(found.products), at), inverse);
      if (!op.getMayBeEmpty())
        return result;
      // The products of a row without a key may be infinite or NaN.
      Value nothing = b.constant(element, 0);
      return arith::SelectOp::create(b, compare(b, arith::CmpFPredicate::OEQ, inverse, nothing), nothing, result);
    });
  }

  KernelAttentionOp op;
  KernelBuilder kernel;
  const unsigned batchRank;
  const ArrayRef<AffineExpr> loops;
  const Type element; // of all intermediate values
  AttentionOps found;
};

/// Merges equal constants, extents and initial tensors of a kernel, which the decomposition and what precedes and
/// follows it have each created.
void mergeEqual(Block &body) {
  SmallVector<Operation *> first;
  for (Operation &next : llvm::make_early_inc_range(body)) {
    if (!isa<arith::ArithDialect>(next.getDialect()) && !isa<tensor::EmptyOp, linalg::FillOp>(next))
      continue;
    auto isEqual = [&](Operation *other) {
      return OperationEquivalence::isEquivalentTo(other, &next, OperationEquivalence::IgnoreLocations);
    };
    if (auto known = llvm::find_if(first, isEqual); known != first.end()) {
      next.replaceAllUsesWith(*known);
      next.erase();
    } else {
      first.push_back(&next);
    }
  }
}

} // namespace

AttentionOps decompose(KernelAttentionOp op) {
  Block &body = *op->getBlock();
  AttentionOps found = AttentionDecomposer(op).run();
  op.getResult().replaceAllUsesWith(found.result.getResult(0));
  op.erase();
  mergeEqual(body);
  return found;
}

} // namespace mlir::kiln
