// SPDX-License-Identifier: Apache-2.0
//
// 1. The rows are the parallel loops of the next stage that reduces; the elements of a row are what that stage
//    reduces.
// 2. A stage is per row if it stores a value for each row, and per element if it stores values of rows x elements.
// 3. Elements that a stage of the run stores are recomputed where another stage reads them, so that no thread waits
//    for memory that another thread writes. The cost of that is limited.
// 4. All elements are stored after all reductions. So a result may share the memory of an argument that reductions
//    read only in their own row, and per-element stages only at their own element.
#include "targets/cuda/rows/FusedStages.h"

#include "compiler/dialect/Extents.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "targets/cuda/gemm/Match.h"
#include "targets/cuda/ptx/Combiner.h"

namespace kiln::cuda {

using namespace mlir;

/// The most operations of an element, including recomputed ones.
static constexpr int64_t mostOperations = 200;
/// The longest row whose elements one block stores; longer rows are left to several blocks.
static constexpr int64_t mostStored = 1 << 16;

namespace {

/// The loops of an expression: those of rows, then those along the row.
struct RowLoops {
  SmallVector<AffineExpr> extents;
  bool isReduced = false; // the loops along the row are a reduction's
};

/// Traverses everything that stages read.
class RunFinder {
public:
  RunFinder(const StageContext &context, int64_t leastLength)
      : kernel(context.kernel), placement(context.placement), context(kernel.getContext()), leastLength(leastLength) {
    run.first = context.number;
  }

  std::optional<RowRun> find();

private:
  struct Read {
    Type type;
    AffineMap map;
    bool isReduced;
  };

  bool setElements(linalg::GenericOp op, ArrayRef<AffineExpr> extents);
  bool add(const KernelStage &stage);
  bool addReads(linalg::GenericOp op, ArrayRef<AffineExpr> at, const RowLoops &loops);
  bool addReads(Value tensor, AffineMap map, const RowLoops &loops);
  bool addReduction(linalg::GenericOp op, SmallVector<AffineExpr> at, const RowLoops &loops);
  bool addExtracted(Value tensor);
  bool isWithinRow(AffineMap map, const RowLoops &loops) const;
  bool isAlongRow(AffineMap map, const RowLoops &loops) const;
  bool isAlongRow(tensor::ExtractOp extract, ArrayRef<AffineExpr> at, const RowLoops &loops) const;
  bool areInPlaceReadsRight() const;
  void setUnstored();

  bool isOfRun(Value tensor) const {
    auto op = tensor.getDefiningOp<linalg::GenericOp>();
    return op && (llvm::is_contained(run.perRow, op) || llvm::is_contained(run.perElement, op));
  }
  AffineMap identity(size_t dims) const { return AffineMap::getMultiDimIdentityMap(dims, context); }

  /// Returns a row's coordinates.
  AffineMap ofRows(size_t dims) const {
    return AffineMap::get(dims, 0, identity(dims).getResults().take_front(run.rows.size()), context);
  }

  func::FuncOp kernel;
  const Placement &placement;
  MLIRContext *context;
  int64_t leastLength;
  RowRun run;
  SmallVector<Read> inPlaceReads;
  SmallVector<Type> stored;
  int64_t operations = 0; // operations of the current stage
  bool hasRow = false;    // whether the current reduction reads a row's elements contiguously
};

/// Returns the first reduction among the op and the ops that are computed in place for it.
linalg::GenericOp findReduction(linalg::GenericOp op, const Placement &placement) {
  if (!op || op.getNumReductionLoops())
    return op;
  for (Value operand : op->getOperands())
    if (!placement.find(operand))
      if (linalg::GenericOp found = findReduction(operand.getDefiningOp<linalg::GenericOp>(), placement))
        return found;
  return {};
}

SmallVector<AffineExpr> parallelExtents(linalg::GenericOp op) {
  SmallVector<AffineExpr> extents;
  for (auto [extent, kind] : llvm::zip_equal(loopExtents(op), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel)
      extents.push_back(extent);
  return extents;
}

/// Whether parallel loops come first and are the dimensions of the results, in this order.
bool isInOrder(linalg::GenericOp op) {
  const unsigned parallel = op.getNumParallelLoops();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if ((kind == utils::IteratorType::parallel) != (loop < parallel))
      return false;
  AffineMap all = AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op->getContext());
  AffineMap rows = AffineMap::get(op.getNumLoops(), 0, all.getResults().take_front(parallel), op->getContext());
  return llvm::all_of(op.getDpsInitsMutable(),
                      [&](OpOperand &init) { return op.getMatchingIndexingMap(&init) == rows; });
}

/// Whether only the row's own part of a tensor is read, and no other thread's row.
bool RunFinder::isWithinRow(AffineMap map, const RowLoops &loops) const {
  const size_t rows = run.rows.size();
  return map && map.getNumResults() >= rows &&
         map.getResults().take_front(rows) == ofRows(loops.extents.size()).getResults();
}

/// Whether neighbours in the row are neighbours in memory, in a tensor that has all the rows.
bool RunFinder::isAlongRow(AffineMap map, const RowLoops &loops) const {
  if (!map || map.getNumResults() == 0)
    return false;
  for (auto [loop, extent] : llvm::enumerate(loops.extents))
    if (!map.isFunctionOfDim(loop) && extent != getAffineConstantExpr(1, context))
      return false;
  const unsigned last = loops.extents.size() - 1;
  return loops.extents.back() == getAffineConstantExpr(1, context) ||
         (map.getResults().back().isFunctionOfDim(last) &&
          llvm::none_of(map.getResults().drop_back(), [&](AffineExpr expr) { return expr.isFunctionOfDim(last); }));
}

/// Whether an extracted element, such as the last one of a row, is found by an index along the row.
bool RunFinder::isAlongRow(tensor::ExtractOp extract, ArrayRef<AffineExpr> at, const RowLoops &loops) const {
  auto isAlong = [&](Value index) {
    auto loop = index.getDefiningOp<linalg::IndexOp>();
    return loop && at[loop.getDim()] == getAffineDimExpr(loops.extents.size() - 1, context);
  };
  auto indices = extract.getIndices();
  return loops.isReduced && placement.find(extract.getTensor()) && !indices.empty() && isAlong(indices.back()) &&
         llvm::none_of(indices.drop_back(), isAlong);
}

bool RunFinder::addReads(Value tensor, AffineMap map, const RowLoops &loops) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (op && llvm::is_contained(run.perRow, op))
    return map == ofRows(loops.extents.size());
  if (isOfRun(tensor)) {
    const bool isSame = map == identity(loops.extents.size()) && loops.extents == loopExtents(op);
    hasRow |= isSame && loops.isReduced; // such as rows of a table, found by their indices
    return isSame && addReads(op, map.getResults(), loops);
  }
  if (std::optional<Parameter> place = placement.find(tensor)) {
    operations += 4;
    hasRow |= loops.isReduced && isAlongRow(map, loops);
    run.reads.push_back({tensor, map, loops.extents});
    if (placement.isInPlace(*place))
      inPlaceReads.push_back({tensor.getType(), map, loops.isReduced || loops.extents.size() == run.rows.size()});
    return !placement.isInPlace(*place) || map;
  }
  if (!op)
    return true;
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(cast<OpResult>(tensor).getResultNumber()));
  SmallVector<AffineExpr> at(op.getNumLoops());
  for (unsigned i = 0; i < written.getNumResults(); ++i)
    at[written.getDimPosition(i)] = map.getResult(i);
  return op.getNumReductionLoops() ? addReduction(op, at, loops) : addReads(op, at, loops);
}

/// `at`: the op's loops over those of `loops`.
bool RunFinder::addReads(linalg::GenericOp op, ArrayRef<AffineExpr> at, const RowLoops &loops) {
  operations += std::distance(op.getBlock()->begin(), op.getBlock()->end());
  if (operations > mostOperations)
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (op.getMatchingBlockArgument(&operand).use_empty() || (op.getNumReductionLoops() && op.isDpsInit(&operand)))
      continue;
    AffineMap map = operandMap(operand).replaceDimsAndSymbols(at, {}, loops.extents.size(), 0);
    if (!addReads(operand.get(), simplifyAffineMap(map), loops))
      return false;
  }
  for (tensor::ExtractOp extract : op.getBlock()->getOps<tensor::ExtractOp>()) {
    if (!addExtracted(extract.getTensor()))
      return false;
    hasRow |= isAlongRow(extract, at, loops);
  }
  return true;
}

/// Data-dependent indices may select any element, so the run must not store the tensor.
bool RunFinder::addExtracted(Value tensor) {
  operations += 4;
  if (isOfRun(tensor))
    return false;
  if (std::optional<Parameter> place = placement.find(tensor))
    return !placement.isInPlace(*place);
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  return !op || (op.getNumReductionLoops() == 0 &&
                 llvm::all_of(op->getOperands(), [&](Value operand) { return addExtracted(operand); }) &&
                 op.getBlock()->getOps<tensor::ExtractOp>().empty());
}

bool RunFinder::addReduction(linalg::GenericOp op, SmallVector<AffineExpr> at, const RowLoops &loops) {
  if (loops.extents.size() != run.rows.size() || !isInOrder(op) || !Combiner::of(op))
    return false;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!addReads(init.get(), op.getMatchingIndexingMap(&init).replaceDimsAndSymbols(at, {}, loops.extents.size(), 0),
                  loops))
      return false;
  RowLoops inner{run.rows, /*isReduced=*/true};
  const SmallVector<AffineExpr> extents = loopExtents(op);
  for (AffineExpr extent : ArrayRef(extents).drop_front(op.getNumParallelLoops())) {
    at[op.getNumParallelLoops() + inner.extents.size() - run.rows.size()] =
        getAffineDimExpr(inner.extents.size(), context);
    inner.extents.push_back(extent);
  }
  hasRow = false;
  AffineExpr length = mlir::kiln::getProduct(ArrayRef(inner.extents).drop_front(run.rows.size()), context);
  run.length = std::max(run.length, largestValue(length, kernel));
  return addReads(op, at, inner) && hasRow;
}

/// Whether results may share the memory that has been read so far; everything is stored after these reads.
bool RunFinder::areInPlaceReadsRight() const {
  for (const Read &read : inPlaceReads) {
    if (!llvm::is_contained(stored, read.type))
      continue;
    RowLoops loops{SmallVector<AffineExpr>(read.map.getNumDims()), read.isReduced};
    const bool isOwn = read.map == identity(read.map.getNumDims()) || read.map == ofRows(read.map.getNumDims());
    if (!isOwn && !(read.isReduced && isWithinRow(read.map, loops)))
      return false;
  }
  return true;
}

/// Whether a stage may store such elements; all stages of the run have the same extents.
bool RunFinder::setElements(linalg::GenericOp op, ArrayRef<AffineExpr> extents) {
  const size_t rows = run.rows.size();
  if (extents.size() <= rows || extents.take_front(rows) != ArrayRef(run.rows) || op.getNumReductionLoops())
    return false;
  ArrayRef<AffineExpr> elements = extents.drop_front(rows);
  const int64_t length = largestValue(mlir::kiln::getProduct(elements, context), kernel);
  if (length > mostStored || (!run.perElement.empty() && elements != ArrayRef(run.elements)))
    return false;
  run.elements.assign(elements.begin(), elements.end());
  run.length = std::max(run.length, length);
  return true;
}

/// Adds the stage to the run. Returns false, with the run unchanged except for reads, if the stage does not fit.
bool RunFinder::add(const KernelStage &stage) {
  linalg::GenericOp op = stage.op;
  if (!op || !isInOrder(op) || llvm::is_contained(run.perRow, op) || findContraction({kernel, placement, stage}))
    return false;
  SmallVector<AffineExpr> extents = parallelExtents(op);
  const bool isPerRow = extents == run.rows;
  if (!isPerRow && !setElements(op, extents))
    return false;
  operations = 0;
  RowLoops loops{extents};
  SmallVector<AffineExpr> at(identity(extents.size()).getResults());
  at.resize(op.getNumLoops());
  for (const Store &store : stage.stores)
    if (store.place.kind == Parameter::Tensor)
      stored.push_back(store.value.getType());
  if (!(op.getNumReductionLoops() ? addReduction(op, at, loops) : addReads(op, at, loops)) || !areInPlaceReadsRight())
    return false;
  (isPerRow ? run.perRow : run.perElement).push_back(op);
  return true;
}

void RunFinder::setUnstored() {
  ArrayRef<KernelStage> all(placement.stages);
  for (const KernelStage &stage : all.slice(run.first, run.count))
    for (const Store &store : stage.stores) {
      const bool isRead = llvm::any_of(llvm::enumerate(all), [&](auto other) {
        const bool isOther = other.index() < run.first || other.index() >= run.first + run.count;
        return isOther && placement.isRead(other.value(), store.value);
      });
      if (store.place.kind == Parameter::Scratch && !isRead)
        run.unstored.push_back(store.value);
    }
}

std::optional<RowRun> RunFinder::find() {
  ArrayRef<KernelStage> stages = ArrayRef(placement.stages).drop_front(run.first);
  auto next = llvm::find_if(stages, [&](const KernelStage &stage) { return bool(findReduction(stage.op, placement)); });
  if (next == stages.end())
    return std::nullopt;
  run.rows = parallelExtents(next->op);
  bool reduces = false;
  for (const KernelStage &stage : stages) {
    const RowRun before = run;
    if (!add(stage)) {
      run = before;
      break;
    }
    reduces |= bool(findReduction(stage.op, placement));
    ++run.count;
  }
  const int64_t rows = largestValue(mlir::kiln::getProduct(run.rows, context), kernel);
  const int64_t most = std::numeric_limits<int32_t>::max() / 2;
  if (!reduces || rows > most || run.length > most || (run.count == 1 && run.length < leastLength))
    return std::nullopt;
  setUnstored();
  run.isInPlace = !inPlaceReads.empty();
  return run;
}

} // namespace

std::optional<RowRun> findRowRun(const StageContext &context, int64_t leastLength) {
  return RunFinder(context, leastLength).find();
}

} // namespace kiln::cuda
