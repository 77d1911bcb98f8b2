// SPDX-License-Identifier: Apache-2.0
//
// 1. The first stage stores the scores of the kernel's attention, already masked. The stage of the products is the last
//    one; all stages in between are the attention's ops, or are computed from the sums.
// 2. The epilogue of an output reads the sums and the maximum of its own row.
// 3. Dimensions that neither keys nor values have are rows. So are the heads of a group, if keys and values divide the
//    head index by the group size.
#include "targets/cuda/attention/Match.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/RowReduction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kiln::cuda {

using namespace mlir;
using mlir::kiln::getExtents;

/// The largest supported head dimension.
static constexpr int64_t widestHead = 256;

AffineExpr extentOf(ArrayRef<AttentionAxis> axes, MLIRContext *context) {
  SmallVector<AffineExpr> extents;
  for (const AttentionAxis &axis : axes)
    extents.push_back(axis.extent);
  return mlir::kiln::getProduct(extents, context);
}

namespace {

class Matcher {
public:
  explicit Matcher(const StageContext &context) : context(context), placement(context.placement) {}

  std::optional<Attention> run();

private:
  bool findScores();
  bool findStages();
  bool findOutputs(const StageContext &last);
  bool areRowsOwn(linalg::GenericOp op, ArrayRef<AffineExpr> loops);
  bool isOwnRow(Value tensor, AffineMap at);
  bool areStoresInner(const StageContext &last);
  bool sortDims();
  int64_t groupOf(unsigned dim) const;
  bool isKnown(Value limit);
  void findLimits();
  bool isSmallEnough() const;

  const StageContext &context;
  const Placement &placement;
  Attention found;
  linalg::GenericOp scoreOp; // op of the first stage
  Value scores;              // the value that it stores
  unsigned rank = 0;         // rank of the scores
  unsigned outputRank = 0;   // number of loops of the last stage's op
  SmallVector<linalg::GenericOp> perRow, reachedPerRow;
  SmallVector<AffineExpr> row; // the last stage's loops for the dimensions of the sums
};

//===- The ops -----------------------------------------------------------===//

bool Matcher::findScores() {
  if (!placement.attention || context.stage.op != placement.attention->lastScores() || context.stage.stores.size() != 1)
    return false;
  found.ops = *placement.attention;
  scoreOp = context.stage.op;
  scores = scoreOp->getResult(0);
  std::optional<Contraction> contraction = findContraction(context);
  if (!contraction || contraction->reduction.size() != 1 || !getElementTypeOrSelf(scores).isF32())
    return false;
  found.scores = std::move(*contraction);
  found.query = found.scores.a, found.key = found.scores.b;
  AffineMap stored = scoreOp.getMatchingIndexingMap(scoreOp.getDpsInitOperand(0));
  rank = stored.getNumResults();
  for (unsigned i = 0; i < rank; ++i)
    found.scoreLoops.push_back(found.scores.stageLoops[stored.getDimPosition(i)]);
  found.keys = getExtents(cast<RankedTensorType>(scores.getType())).back();
  return true;
}

//===- Kernel stages -----------------------------------------------------===//

/// The first stage that multiplies the weights is the last one.
bool Matcher::findStages() {
  for (size_t number = context.number + 1; number < placement.stages.size(); ++number) {
    const KernelStage &stage = placement.stages[number];
    if (!stage.op)
      return false;
    if (llvm::is_contained({found.ops.maxima, found.ops.weights, found.ops.sums}, stage.op))
      continue;
    const StageContext last{context.kernel, placement, stage, number};
    std::optional<Contraction> contraction = findContraction(last);
    if (contraction && contraction->op == found.ops.products) {
      found.outputs = std::move(*contraction);
      found.numStages = number - context.number + 1;
      return findOutputs(last) && areStoresInner(last);
    }
    if (!isElementwise(stage.op))
      return false;
    perRow.push_back(stage.op);
  }
  return false;
}

bool Matcher::findOutputs(const StageContext &last) {
  const Contraction &c = found.outputs;
  linalg::GenericOp op = c.op;
  const unsigned weight = AttentionOps::weightOfProducts;
  found.value = weight == c.a ? c.b : c.a;
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(weight));
  if (c.reduction.size() != 1)
    return false;
  for (unsigned i = 0; i < rank; ++i)
    found.outputLoops.push_back(map.getDimPosition(i));
  SmallVector<unsigned> others;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!llvm::is_contained(found.outputLoops, loop))
      others.push_back(loop);
  if (found.outputLoops.back() != c.reduction.front() || others.size() != 1)
    return false;
  found.channelLoop = others.front();
  linalg::GenericOp stageOp = last.stage.op;
  outputRank = stageOp.getNumLoops();
  for (unsigned i = 0; i + 1 < rank; ++i) {
    auto loop = llvm::find(c.stageLoops, found.outputLoops[i]);
    if (loop == c.stageLoops.end())
      return false;
    row.push_back(getAffineDimExpr(loop - c.stageLoops.begin(), stageOp->getContext()));
  }
  SmallVector<AffineExpr> loops(AffineMap::getMultiDimIdentityMap(outputRank, stageOp->getContext()).getResults());
  return (stageOp == op || areRowsOwn(stageOp, loops)) &&
         llvm::all_of(perRow, [&](linalg::GenericOp op) { return llvm::is_contained(reachedPerRow, op); });
}

/// `loops`: the op's loops, over those of the last stage.
bool Matcher::areRowsOwn(linalg::GenericOp op, ArrayRef<AffineExpr> loops) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (op.getMatchingBlockArgument(&operand).use_empty())
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand).replaceDimsAndSymbols(loops, {}, outputRank, 0);
    if (!isOwnRow(operand.get(), map))
      return false;
  }
  return llvm::none_of(op.getBlock()->getOps<tensor::ExtractOp>(), [&](tensor::ExtractOp extract) {
    auto producer = extract.getTensor().getDefiningOp<linalg::GenericOp>();
    return producer && (!placement.find(extract.getTensor()) || llvm::is_contained(perRow, producer) ||
                        llvm::is_contained({found.ops.maxima, found.ops.sums}, producer));
  });
}

/// Whether the tensor's elements at `at` depend on no sums or maxima but those of the output's row.
bool Matcher::isOwnRow(Value tensor, AffineMap at) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || op == found.outputs.op)
    return true;
  if (llvm::is_contained({found.ops.maxima, found.ops.sums}, op))
    return at.getResults() == ArrayRef(row);
  if (llvm::is_contained({scoreOp, found.ops.weights}, op))
    return false;
  const bool isPerRow = llvm::is_contained(perRow, op);
  if (placement.find(tensor) && !isPerRow)
    return true;
  if (op.getNumReductionLoops())
    return false;
  if (isPerRow)
    reachedPerRow.push_back(op);
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(cast<OpResult>(tensor).getResultNumber()));
  SmallVector<AffineExpr> loops(op.getNumLoops());
  for (unsigned i = 0; i < written.getNumResults(); ++i)
    loops[written.getDimPosition(i)] = at.getResult(i);
  return areRowsOwn(op, loops);
}

/// Whether no other stage reads what the inner stages store, and no block reads memory that another one may have
/// overwritten with an output.
bool Matcher::areStoresInner(const StageContext &last) {
  func::FuncOp kernel = context.kernel;
  auto arguments = KernelFunction(kernel).tensors();
  ArrayRef<KernelStage> all(placement.stages), inner = all.slice(context.number, found.numStages - 1);
  for (const KernelStage &stage : inner) {
    for (const Store &store : stage.stores)
      for (auto [number, other] : llvm::enumerate(all)) {
        const bool isOther = number < context.number || number > last.number;
        if (store.place.kind != Parameter::Scratch || (isOther && placement.isRead(other, store.value)))
          return false;
      }
    for (auto [number, argument] : llvm::enumerate(arguments))
      for (const Store &store : last.stage.stores)
        if (placement.isInPlace({Parameter::Tensor, int64_t(number)}) && argument.getType() == store.value.getType() &&
            placement.isRead(stage, argument))
          return false;
  }
  return true;
}

//===- Dimensions --------------------------------------------------------===//

/// Returns by what the expression divides the loop wherever it uses it; 0 if it does not use the loop, 1 if it uses
/// the loop in another way.
int64_t divisorOf(AffineExpr expr, unsigned loop) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return expr.isFunctionOfDim(loop) ? 1 : 0;
  auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
  auto by = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (expr.getKind() == AffineExprKind::FloorDiv && dim && dim.getPosition() == loop && by && by.getValue() > 0)
    return by.getValue();
  const int64_t x = divisorOf(binary.getLHS(), loop), y = divisorOf(binary.getRHS(), loop);
  return x == 0 || y == 0 || x == y ? std::max(x, y) : 1;
}

int64_t divisorOf(linalg::GenericOp op, unsigned number, unsigned loop) {
  int64_t divisor = 0;
  for (AffineExpr expr : op.getMatchingIndexingMap(&op->getOpOperand(number)).getResults())
    if (const int64_t of = divisorOf(expr, loop))
      divisor = divisor == 0 || divisor == of ? of : 1;
  return divisor;
}

/// Returns how many neighbours in the dimension share keys and values; 0: all.
int64_t Matcher::groupOf(unsigned dim) const {
  const int64_t ofKeys = divisorOf(found.scores.op, found.key, found.scoreLoops[dim]),
                ofValues = divisorOf(found.outputs.op, found.value, found.outputLoops[dim]);
  return ofKeys == 0 || ofValues == 0 || ofKeys == ofValues ? std::max(ofKeys, ofValues) : 1;
}

bool Matcher::sortDims() {
  SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(scores.getType()));
  for (unsigned dim = 0; dim + 1 < rank; ++dim) {
    const int64_t group = groupOf(dim);
    auto extent = dyn_cast<AffineConstantExpr>(extents[dim]);
    if (group == 0) {
      found.rows.push_back({dim, extents[dim]});
    } else if (group > 1 && extent && extent.getValue() % group == 0) {
      found.batch.push_back({dim, extents[dim].floorDiv(group), group});
      found.rows.push_back({dim, getAffineConstantExpr(group, extent.getContext())});
    } else {
      found.batch.push_back({dim, extents[dim]});
    }
  }
  auto headDim = dyn_cast<AffineConstantExpr>(extentOf(found.scores, found.scores.reduction));
  auto channels = dyn_cast<AffineConstantExpr>(extentOf(found.outputs, found.channelLoop));
  if (!headDim || !channels)
    return false;
  found.headDim = headDim.getValue(), found.channels = channels.getValue();
  return found.headDim > 0 && found.headDim <= widestHead && found.channels > 0 && found.channels <= widestHead;
}

/// Block indices are i32.
bool Matcher::isSmallEnough() const {
  MLIRContext *ofMaps = context.kernel->getContext();
  const double batch = double(largestValue(extentOf(found.batch, ofMaps), context.kernel)),
               rows = double(largestValue(extentOf(found.rows, ofMaps), context.kernel));
  return batch * std::max(1.0, rows / 4) * 32 < double(1 << 30) && rows < double(1 << 30);
}

//===- Mask limits -------------------------------------------------------===//

/// Whether the limit can be computed before the scores: from indices and what is in memory.
bool Matcher::isKnown(Value limit) {
  if (limit.getParentBlock() != scoreOp.getBlock())
    return true;
  if (auto argument = dyn_cast<BlockArgument>(limit))
    return placement.find(scoreOp->getOperand(argument.getArgNumber())).has_value();
  Operation *op = limit.getDefiningOp();
  return isa<linalg::IndexOp>(op) || (isa<arith::ArithDialect>(op->getDialect()) &&
                                      llvm::all_of(op->getOperands(), [&](Value operand) { return isKnown(operand); }));
}

void Matcher::findLimits() {
  llvm::copy_if(found.ops.limits, std::back_inserter(found.limits),
                [&](const KeyLimit &limit) { return isKnown(limit.value); });
  found.isPlainWithin = found.ops.isPlainWithin && found.limits.size() == found.ops.limits.size();
}

std::optional<Attention> Matcher::run() {
  if (!findScores() || !findStages() || !sortDims() || !isSmallEnough())
    return std::nullopt;
  findLimits();
  for (const KernelStage &stage : ArrayRef(placement.stages).slice(context.number, found.numStages - 1))
    for (const Store &store : stage.stores)
      found.unstored.push_back(store.value);
  found.mma = findAttentionMma(found, placement);
  return found;
}

} // namespace

std::optional<Attention> findAttention(const StageContext &context) { return Matcher(context).run(); }

} // namespace kiln::cuda
