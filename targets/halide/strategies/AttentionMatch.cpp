// SPDX-License-Identifier: Apache-2.0
//
// 1. The kernel has two contractions, which are the scores and the products of compiler/kernel/Attention.h.
// 2. The ops between the products and the result may differ, as long as every dimension of the products is a dimension
//    of the result.
#include "targets/halide/strategies/AttentionMatch.h"

namespace kiln::halide {

using namespace mlir;

namespace {

class Matcher {
public:
  explicit Matcher(func::FuncOp kernel) : kernel(kernel) {}

  std::optional<AttentionMatch> run() {
    if (!hasOneResultShape(kernel) || kernel.getNumResults() != 1 || !findContractions() || !findOps() ||
        !findProducts() || !alignResult())
      return std::nullopt;
    findRowStages();
    if (found.masked)
      findLimits();
    return found;
  }

private:
  bool findContractions() {
    std::vector<Contraction> contractions;
    for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>())
      if (auto contraction = asContraction(op, /*mayScale=*/true);
          contraction && contraction->tile == 0 && contraction->m)
        contractions.push_back(*contraction);
    if (contractions.size() != 2)
      return false;
    found.scores = contractions[0];
    found.products = contractions[1];
    auto type = cast<RankedTensorType>(found.scores.op.getResult(0).getType());
    shape = type.getShape();
    rank = shape.size();
    AffineMap map = found.scores.op.getMatchingIndexingMap(found.scores.op.getDpsInitOperand(0));
    return type.getElementType().isF32() && rank >= 2 && map.getDimPosition(rank - 2) == *found.scores.m &&
           found.scores.reduction.size() == 1 && found.products.reduction.size() == 1;
  }

  bool findOps() {
    std::optional<AttentionOps> ops = attentionOf(found.scores.op);
    if (!ops || ops->productOp != found.products.op)
      return false;
    static_cast<AttentionOps &>(found) = *ops;
    return true;
  }

  /// Whether the products have the outer dimensions and the queries where the weights have them, and no other
  /// dimensions.
  bool findProducts() {
    linalg::GenericOp op = found.products.op;
    AffineMap from = op.getIndexingMapsArray()[found.products.a];
    AffineMap to = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    // The values must be defined before the first of the two ops that are built together.
    Operation *values = op.getDpsInputs()[found.products.b].getDefiningOp();
    return op.getDpsInputs()[found.products.a] == found.weights.getResult(0) && from.isProjectedPermutation() &&
           to.getNumResults() == rank && from.getNumResults() == rank &&
           from.dropResult(rank - 1) == to.dropResult(rank - 1) &&
           from.getDimPosition(rank - 1) == found.products.reduction[0] &&
           from.getDimPosition(rank - 2) == *found.products.m && (!values || values->isBeforeInBlock(found.sums));
  }

  /// Whether the result has every dimension of the products, with the channels innermost.
  bool alignResult() {
    Alignment alignment(kernel);
    Value products = found.products.op.getResult(0);
    if (cast<RankedTensorType>(kernel.getResultTypes().front()).getRank() != int64_t(rank))
      return false;
    for (unsigned i = 0; i < rank; ++i) {
      int at = alignment.get(products, i);
      if (at < 0 || llvm::is_contained(found.productAt, at))
        return false;
      found.productAt.push_back(at);
    }
    return found.productAt.back() == int(rank) - 1;
  }

  void findRowStages() {
    llvm::SetVector<Value> rows;
    rows.insert(found.sums.getResult(0));
    for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>())
      if (isElementwise(op) && cast<RankedTensorType>(op.getResult(0).getType()).getShape() == shape.drop_back() &&
          llvm::any_of(op.getDpsInputs(), [&](Value input) { return rows.contains(input); })) {
        found.perRow.insert(op);
        rows.insert(op.getResult(0));
      }
  }

  void findLimits() {
    auto isKnown = [](OpOperand &) { return true; };
    found.limits = findKeyLimits(found.masked, rank - 1, rank - 2, Dependence::GrowsWithQuery, isKnown).limits;
  }

  func::FuncOp kernel;
  AttentionMatch found;
  ArrayRef<int64_t> shape;
  unsigned rank = 0;
};

} // namespace

std::optional<AttentionMatch> matchAttentionOps(func::FuncOp kernel) { return Matcher(kernel).run(); }

} // namespace kiln::halide
