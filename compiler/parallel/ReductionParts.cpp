// SPDX-License-Identifier: Apache-2.0
//
// Turns a sum over ranks into a sum over parts: each term, a linear layer that is split along K, becomes the product of
// each part of K, [parts, rows, outputs]. Terms are added part by part, so that several layers send one sum.
#include "compiler/dialect/gradients/RankParts.h"
#include "compiler/parallel/Passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_REDUCTIONPARTS
#include "compiler/parallel/Passes.h.inc"

namespace {

class SumInParts {
public:
  SumInParts(OpBuilder &builder, AllReduceOp sum, RankParts parts, DictionaryAttr shards)
      : sum(sum), b(builder, sum.getLoc()), parts(parts), shards(shards) {}

  LogicalResult run();

private:
  /// Returns the operands of the sum by part, [own parts, ...]; null if they cannot be determined.
  Value partsOf(Value term);
  Value productInParts(LinearOp linear, ShardAttr shard);

  AllReduceOp sum;
  GradientBuilder b;
  const RankParts parts;
  const DictionaryAttr shards;
};

/// Computes [rows, K] as [own parts, rows, K of each part], each with its part of the weight. The products have the
/// sum's element type, which may be wider.
Value SumInParts::productInParts(LinearOp linear, ShardAttr shard) {
  const Type element = sum.getType().getElementType();
  const unsigned kDim = 1 - linear.getOutputDim();
  Value x = b.asMatrix(linear.getX()), product;
  const SmallVector<Value> rows = parts.divide(b, x, 1, shard),
                           weights = parts.divide(b, linear.getWeight(), kDim, shard);
  for (auto [own, weight] : llvm::zip_equal(rows, weights)) {
    Value first = b.transpose(own, {1, 0, 2}), second = kDim == 1 ? b.transpose(weight, {1, 0, 2}) : weight;
    Value part = b.create<MatmulOp>(first, second, /*transpose_b=*/kDim == 1);
    if (rankedType(part).getElementType() != element)
      part = b.createAs<CastOp>(rankedType(part).clone(element), part);
    product = product ? b.add(product, part) : part;
  }
  SmallVector<AffineExpr> extents = getExtents(rankedType(linear));
  extents.insert(extents.begin(), constantExtent(x, parts.own));
  return b.reshape(product, extents);
}

Value SumInParts::partsOf(Value term) {
  if (auto add = term.getDefiningOp<AddOp>(); add && add.getLhs().getType() == add.getRhs().getType()) {
    Value lhs = partsOf(add.getLhs()), rhs = lhs ? partsOf(add.getRhs()) : Value();
    return rhs ? b.add(lhs, rhs) : Value();
  }
  if (auto widened = term.getDefiningOp<CastOp>())
    term = widened.getX();
  auto linear = term.getDefiningOp<LinearOp>();
  auto weight = linear ? linear.getWeight().getDefiningOp<ParameterOp>() : ParameterOp();
  if (!weight || linear.getBias() || linear.getScales() || weight.getSources().size() > 1)
    return {};
  auto shard = shards.getAs<ShardAttr>(cast<StringAttr>(weight.getSources()[0]));
  return shard && shard.getDim() != linear.getOutputDim() ? productInParts(linear, shard) : Value();
}

LogicalResult SumInParts::run() {
  Value stacked = partsOf(sum.getX());
  if (!stacked) {
    Operation *term = sum.getX().getDefiningOp();
    return sum.emitError() << "--reduction-parts: unsupported gradient; expected gradients of replicated values to "
                              "come from linear layers, "
                              "got one from "
                           << (term ? term->getName().stripDialect() : "a loop");
  }
  sum.getResult().replaceAllUsesWith(parts.add(b, unstack(b, stacked)));
  sum.erase();
  return success();
}

/// A sum of zeros and infinities is exact in any order: it tells the ranks whether one of them has an infinity.
bool hasNoOrder(AllReduceOp sum) {
  auto choice = sum.getX().getDefiningOp<WhereOp>();
  auto isZeroOrInfinite = [](Value value) {
    auto constant = value.getDefiningOp<ConstantOp>();
    auto values = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
    return values && llvm::all_of(values.getValues<APFloat>(), [](const APFloat &number) {
             return number.isPosZero() || (number.isInfinity() && !number.isNegative());
           });
  };
  return choice && isZeroOrInfinite(choice.getLhs()) && isZeroOrInfinite(choice.getRhs());
}

struct ReductionParts : impl::ReductionPartsBase<ReductionParts> {
  void runOnOperation() override {
    const std::optional<RankParts> parts = RankParts::of(getOperation());
    if (!parts)
      return;
    auto shards = getOperation()->getAttrOfType<DictionaryAttr>(shardsAttrName);
    SmallVector<AllReduceOp> sums;
    getOperation().walk([&](AllReduceOp sum) {
      if (sum.getOver() == Group::Ranks && !hasNoOrder(sum))
        sums.push_back(sum);
    });
    for (AllReduceOp sum : sums) {
      OpBuilder builder(sum);
      if (failed(SumInParts(builder, sum, *parts, shards).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::kiln
