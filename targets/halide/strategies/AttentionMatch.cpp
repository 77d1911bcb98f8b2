// SPDX-License-Identifier: Apache-2.0
//
// 1. The kernel has two contractions. The scores are used by an optional elementwise mask, the maxima, the weights and
//    the sums, each of which is used only by the next ones.
// 2. The ops between the products and the result may differ, as long as every dimension of the products is a dimension
//    of the result.
// 3. Limits are recognised in masked = select(key < limit and .., score, very low), the form of causal masks and
//    lengths.
#include "targets/halide/strategies/AttentionMatch.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/RowReduction.h"
#include "compiler/kernel/Softmax.h"

namespace kiln::halide {

using namespace mlir;

static bool isElementwise(linalg::GenericOp op, ArrayRef<int64_t> shape) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInits() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         cast<RankedTensorType>(op.getResult(0).getType()).getShape() == shape;
}

static bool isUsedOnlyBy(Value value, ArrayRef<Operation *> users) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) { return llvm::is_contained(users, user); });
}

/// Whether the op combines the elements of `value`, by one of `Combiners`, along its last dimension.
template <typename... Combiners> static bool isRowReduction(linalg::GenericOp op, Value value) {
  return reorderableCombiner(op) && isa_and_nonnull<Combiners...>(rowCombiner(op, value));
}

namespace {

class Matcher {
public:
  explicit Matcher(func::FuncOp kernel) : kernel(kernel) {}

  std::optional<AttentionMatch> run() {
    if (!hasOneResultShape(kernel) || kernel.getNumResults() != 1 || !findContractions() || !findSoftmax() ||
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

  bool findSoftmax() {
    AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, kernel.getContext());
    Value wide = found.scores.op.getResult(0);
    SmallVector<linalg::GenericOp> users = genericUsers(wide);
    if (users.size() == 1 && isElementwise(users[0], shape)) {
      auto score = inputAt(users[0], wide, identity);
      if (!score || !isUsedOnlyBy(wide, {users[0]}))
        return false;
      found.masked = users[0];
      found.maskedScore = *score;
      wide = users[0].getResult(0);
      users = genericUsers(wide);
    }
    if (users.size() != 2 || !isUsedOnlyBy(wide, {users[0], users[1]}))
      return false;
    found.maxima = users[0];
    found.weights = users[1];
    auto difference = found.weights->getAttrOfType<DenseI64ArrayAttr>(mlir::kiln::exponentialAttrName);
    Value maxima = found.maxima.getResult(0), weights = found.weights.getResult(0);
    auto score = inputAt(found.weights, wide, identity);
    auto maximum = inputAt(found.weights, maxima, identity.dropResult(rank - 1));
    if (!isRowReduction<arith::MaximumFOp, arith::MaxNumFOp>(found.maxima, wide) || !difference || !score || !maximum ||
        difference.asArrayRef() != ArrayRef<int64_t>{*score, *maximum} || !isElementwise(found.weights, shape) ||
        !isUsedOnlyBy(maxima, {found.weights}))
      return false;
    found.weightScore = *score;
    found.weightMaximum = *maximum;
    users = genericUsers(weights);
    if (users.size() != 2 || !llvm::is_contained(users, found.products.op) ||
        !isUsedOnlyBy(weights, {users[0], users[1]}))
      return false;
    found.sums = users[0] == found.products.op ? users[1] : users[0];
    return isRowReduction<arith::AddFOp>(found.sums, weights);
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
      if (isElementwise(op, shape.drop_back()) &&
          llvm::any_of(op.getDpsInputs(), [&](Value input) { return rows.contains(input); })) {
        found.perRow.insert(op);
        rows.insert(op.getResult(0));
      }
  }

  void findLimits() {
    auto mask = asMask(found.masked.getBlock()->getTerminator()->getOperand(0));
    for (Value condition : mask ? mask->conditions() : SmallVector<Value>())
      if (auto limit = asUpperLimit(condition))
        addLimit(*limit);
  }

  void addLimit(UpperLimit limit) {
    if (limit.index.getDim() != rank - 1)
      return;
    if (Dependence how = dependence(limit.value); how != Dependence::Other)
      found.limits.push_back({limit.value, limit.isInclusive, how == Dependence::GrowsWithQuery});
  }

  /// How a value in the region of `masked` depends on the query and the key.
  enum class Dependence { None, GrowsWithQuery, Other };

  Dependence dependence(Value value) {
    linalg::GenericOp op = found.masked;
    if (value.getParentBlock() != op.getBlock())
      return Dependence::None;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(argument.getArgNumber()));
      return map.isFunctionOfDim(rank - 1) || map.isFunctionOfDim(rank - 2) ? Dependence::Other : Dependence::None;
    }
    Operation *defining = value.getDefiningOp();
    if (auto index = dyn_cast<linalg::IndexOp>(defining))
      return index.getDim() == rank - 2   ? Dependence::GrowsWithQuery
             : index.getDim() == rank - 1 ? Dependence::Other
                                          : Dependence::None;
    if (defining->getNumOperands() == 0 || !isa<arith::ArithDialect>(defining->getDialect()))
      return isa<arith::ConstantOp>(defining) ? Dependence::None : Dependence::Other;
    auto result = Dependence::None;
    for (auto [i, operand] : llvm::enumerate(defining->getOperands())) {
      Dependence each = dependence(operand);
      bool isMonotone = isa<arith::AddIOp>(defining) || (isa<arith::SubIOp>(defining) && i == 0);
      if (each == Dependence::Other || (each == Dependence::GrowsWithQuery && !isMonotone))
        return Dependence::Other;
      if (each == Dependence::GrowsWithQuery)
        result = each;
    }
    return result;
  }

  func::FuncOp kernel;
  AttentionMatch found;
  ArrayRef<int64_t> shape;
  unsigned rank = 0;
};

} // namespace

std::optional<AttentionMatch> matchAttentionOps(func::FuncOp kernel) { return Matcher(kernel).run(); }

} // namespace kiln::halide
