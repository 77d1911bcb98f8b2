// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/rows/Columns.h"

#include "compiler/dialect/Extents.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "targets/cuda/gemm/Match.h"
#include "targets/cuda/ptx/Combiner.h"
#include "targets/cuda/rows/StageReductions.h"

namespace kiln::cuda {

using namespace mlir;
using mlir::kiln::getExtents;
using mlir::kiln::getProduct;

/// The shortest reductions that the threads of a block share: with several columns; with one; and with several if a run
/// of narrow rows follows, which needs no other launch then.
static constexpr int64_t leastLength = 32, leastLengthOfOne = 128, leastLengthOfNarrow = 4, mostNarrow = 128;
/// The most results: for more of them there are enough threads without sharing.
static constexpr int64_t mostResults = 1 << 16;
/// The most columns of a row that a block computes. Their sums are in its shared memory.
static constexpr int64_t mostWidth = 2048;

namespace {

/// Finds what the columns of a reduction are, from what it reads.
class ColumnFinder {
public:
  ColumnFinder(const StageContext &context, linalg::GenericOp op)
      : placement(context.placement), op(op), extents(loopExtents(op)) {}

  /// Returns the loops of the columns; none if there is one column, whose elements are contiguous. Returns nullopt if
  /// no tensor has contiguous elements of neighbouring columns, or of the only one.
  std::optional<SmallVector<unsigned>> find() {
    add(op, llvm::to_vector(AffineMap::getMultiDimIdentityMap(extents.size(), op->getContext()).getResults()));
    return columns;
  }

private:
  void add(linalg::GenericOp reader, ArrayRef<AffineExpr> at);
  void add(Value tensor, AffineMap map);
  void setColumns(AffineMap map);
  bool isOne(unsigned loop) const { return extents[loop] == getAffineConstantExpr(1, op->getContext()); }
  SmallVector<unsigned> resultLoops();

  const Placement &placement;
  linalg::GenericOp op;
  SmallVector<AffineExpr> extents;
  std::optional<SmallVector<unsigned>> columns;
};

/// `at`: the reader's loops over those of the reduction.
void ColumnFinder::add(linalg::GenericOp reader, ArrayRef<AffineExpr> at) {
  for (OpOperand &operand : reader->getOpOperands())
    if (!reader.getMatchingBlockArgument(&operand).use_empty() && !(reader == op && op.isDpsInit(&operand)))
      add(operand.get(), operandMap(operand).replaceDimsAndSymbols(at, {}, extents.size(), 0));
}

void ColumnFinder::add(Value tensor, AffineMap map) {
  if (placement.find(tensor))
    return setColumns(map);
  auto producer = tensor.getDefiningOp<linalg::GenericOp>();
  if (!producer || producer.getNumReductionLoops())
    return;
  AffineMap written =
      producer.getMatchingIndexingMap(producer.getDpsInitOperand(cast<OpResult>(tensor).getResultNumber()));
  SmallVector<AffineExpr> at(producer.getNumLoops());
  for (unsigned i = 0; i < written.getNumResults(); ++i)
    at[written.getDimPosition(i)] = map.getResult(i);
  add(producer, at);
}

/// Returns the loops of the result's dimensions except those of one iteration.
SmallVector<unsigned> ColumnFinder::resultLoops() {
  SmallVector<unsigned> loops;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    if (!isOne(map.getDimPosition(i)))
      loops.push_back(map.getDimPosition(i));
  return loops;
}

/// Sets the columns if the tensor has a dimension for each loop, and the last ones are the last ones of the result.
void ColumnFinder::setColumns(AffineMap map) {
  SmallVector<unsigned> dims;
  for (AffineExpr index : map.getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(index);
    if (!loop && !isa<AffineConstantExpr>(index))
      return;
    if (loop && !isOne(loop.getPosition()))
      dims.push_back(loop.getPosition());
  }
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if (!isOne(loop) && llvm::count(dims, loop) != 1)
      return;
  const SmallVector<unsigned> results = resultLoops();
  size_t count = 0;
  while (count < std::min(dims.size(), results.size()) &&
         dims[dims.size() - 1 - count] == results[results.size() - 1 - count])
    ++count;
  const bool isAlong = !dims.empty() && op.getIteratorTypesArray()[dims.back()] == utils::IteratorType::reduction;
  if (columns ? columns->size() < count : count > 0 || isAlong)
    columns.emplace(results.end() - int64_t(count), results.end());
}

SmallVector<AffineExpr> extentsOf(linalg::GenericOp op, ArrayRef<unsigned> loops) {
  const SmallVector<AffineExpr> all = loopExtents(op);
  return llvm::map_to_vector(loops, [&](unsigned loop) { return all[loop]; });
}

/// Returns the index of an element that these coordinates have in a tensor or a loop nest of these extents.
AffineExpr linearIndex(ArrayRef<AffineExpr> at, ArrayRef<AffineExpr> extents, MLIRContext *context) {
  AffineExpr index = getAffineConstantExpr(0, context);
  for (auto [coordinate, extent] : llvm::zip_equal(at, extents))
    index = (index == getAffineConstantExpr(0, context) ? index : index * extent) + coordinate;
  return index;
}

/// Where a run reads an element: linear indices of the row, of the element in the row and of the place in the tensor,
/// over the read's loops.
class ReadPlace {
public:
  ReadPlace(const RowRead &read, size_t rows, func::FuncOp kernel)
      : dims(unsigned(read.extents.size())), symbols(KernelFunction(kernel).numSymbols()) {
    MLIRContext *context = kernel.getContext();
    SmallVector<AffineExpr> loops;
    for (auto [number, extent] : llvm::enumerate(read.extents))
      loops.push_back(extent == getAffineConstantExpr(1, context) ? getAffineConstantExpr(0, context)
                                                                  : getAffineDimExpr(unsigned(number), context));
    AffineMap map = read.map.replaceDimsAndSymbols(loops, {}, dims, 0);
    ArrayRef<AffineExpr> at(loops), extents(read.extents);
    count = getProduct(extents.drop_front(rows), context);
    row = linearIndex(at.take_front(rows), extents.take_front(rows), context);
    element = linearIndex(at.drop_front(rows), extents.drop_front(rows), context);
    place = linearIndex(map.getResults(), getExtents(cast<RankedTensorType>(read.tensor.getType())), context);
  }

  /// Returns the constant number of consecutive elements that each row reads; 0 if they are not consecutive or not in
  /// the order of rows.
  int64_t width() const {
    auto number = dyn_cast<AffineConstantExpr>(count);
    return number && offset(row * number.getValue() + element) == 0 ? number.getValue() : 0;
  }

  /// Whether each row of `width` consecutive elements reads one of these.
  bool isOneOf(int64_t width) const {
    std::optional<int64_t> constant = offset(row * width);
    return constant && *constant >= 0 && *constant < width;
  }

private:
  /// Returns the place's distance from an index if it is constant.
  std::optional<int64_t> offset(AffineExpr from) const {
    auto constant = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(place - from, dims, symbols));
    return constant ? std::optional(constant.getValue()) : std::nullopt;
  }

  unsigned dims, symbols;
  AffineExpr count, row, element, place;
};

/// Returns the number of consecutive elements of these reads' tensors that belong to a row; 0 if that is not constant,
/// or if a row reads elements of others.
int64_t widthOf(ArrayRef<RowRead> reads, size_t rows, func::FuncOp kernel) {
  if (!llvm::all_of(reads, [](const RowRead &read) { return bool(read.map); }))
    return 0;
  const SmallVector<ReadPlace> places =
      llvm::map_to_vector(reads, [&](const RowRead &read) { return ReadPlace(read, rows, kernel); });
  int64_t most = 0;
  for (const ReadPlace &place : places)
    most = std::max(most, place.width());
  const bool isRight =
      llvm::all_of(places, [&](const ReadPlace &place) { return place.width() == most || place.isOneOf(most); });
  return isRight ? most : 0;
}

/// Calls visit(tensor) for each tensor in memory that the op, or ops that are computed in place for it, reads.
void forEachRead(linalg::GenericOp op, const Placement &placement, function_ref<void(Value)> visit) {
  auto add = [&](Value tensor) {
    auto producer = tensor.getDefiningOp<linalg::GenericOp>();
    if (placement.find(tensor))
      visit(tensor);
    else if (producer)
      forEachRead(producer, placement, visit);
  };
  for (Value operand : op->getOperands())
    add(operand);
  for (tensor::ExtractOp extract : op.getBlock()->getOps<tensor::ExtractOp>())
    add(extract.getTensor());
}

/// Whether the run may overwrite memory that the stage reads, for another row.
bool mayOverwrite(const RowRun &run, const StageContext &context) {
  llvm::DenseSet<Type> stored;
  for (const KernelStage &stage : ArrayRef(context.placement.stages).slice(run.first, run.count))
    for (const Store &store : stage.stores)
      stored.insert(store.value.getType());
  bool result = false;
  forEachRead(context.stage.op, context.placement, [&](Value tensor) {
    result |= context.placement.isInPlace(*context.placement.find(tensor)) && stored.contains(tensor.getType());
  });
  return result;
}

/// Whether only the run reads the stage's results, in memory.
bool isOnlyReader(const RowRun &run, const StageContext &context) {
  ArrayRef<KernelStage> stages(context.placement.stages);
  return llvm::all_of(context.stage.stores, [&](const Store &store) {
    return store.place.kind == Parameter::Scratch && llvm::all_of(llvm::enumerate(stages), [&](auto other) {
             const bool isOfRun = other.index() >= run.first && other.index() < run.first + run.count;
             return isOfRun || !context.placement.isRead(other.value(), store.value);
           });
  });
}

/// Whether the stage's first result has its dimensions in the order of the reduction's.
bool hasOrder(const StageContext &context, const Columns &columns) {
  linalg::GenericOp op = columns.op, stage = context.stage.op;
  const unsigned first = cast<OpResult>(context.stage.stores.front().value).getResultNumber();
  AffineMap reduced = op.getMatchingIndexingMap(op.getDpsInitOperand(0)),
            stored = stage.getMatchingIndexingMap(stage.getDpsInitOperand(first));
  bool result = stored.getNumResults() == reduced.getNumResults();
  for (unsigned i = 0; result && i < reduced.getNumResults(); ++i)
    result = stored.getDimPosition(i) == columns.stageLoops[reduced.getDimPosition(i)];
  return result;
}

void setExtents(func::FuncOp kernel, Columns &columns) {
  auto product = [&](ArrayRef<unsigned> loops) {
    return getProduct(extentsOf(columns.op, loops), kernel.getContext());
  };
  columns.outerCount = product(columns.outer);
  columns.columnCount = product(columns.columns);
  columns.length = product(columns.reduced);
  columns.leastOuter = leastValue(columns.outerCount, kernel);
  columns.mostOuter = largestValue(columns.outerCount, kernel);
  columns.mostColumns = largestValue(columns.columnCount, kernel);
  columns.mostLength = largestValue(columns.length, kernel);
}

/// Adds the run that follows the stage, if it is the only one that reads its results.
void addRun(const StageContext &context, Columns &columns) {
  const size_t next = context.number + 1;
  if (next >= context.placement.stages.size())
    return;
  std::optional<RowRun> run = findRowRun({context.kernel, context.placement, context.placement.stages[next], next}, 1);
  if (!run || !isOnlyReader(*run, context) || mayOverwrite(*run, context))
    return;
  auto isRead = [&](const RowRead &read) {
    return llvm::any_of(context.stage.stores, [&](const Store &store) { return store.value == read.tensor; });
  };
  if (llvm::none_of(run->reads, isRead))
    return;
  const int64_t width =
      widthOf(llvm::to_vector(llvm::make_filter_range(run->reads, isRead)), run->rows.size(), context.kernel);
  auto count = dyn_cast<AffineConstantExpr>(columns.columnCount);
  const bool isRight =
      hasOrder(context, columns) && width > 0 && width <= mostWidth && count && count.getValue() % width == 0;
  columns.width = isRight ? width : 0;
  columns.run = std::move(run);
}

} // namespace

std::optional<Columns> findColumns(const StageContext &context) {
  const auto reductions = findReductions(context);
  if (!reductions || reductions->size() != 1 || findContraction(context))
    return std::nullopt;
  linalg::GenericOp op = reductions->front().op;
  if (!Combiner::of(op))
    return std::nullopt;
  Columns found;
  found.op = op;
  std::optional<SmallVector<unsigned>> loops = ColumnFinder(context, op).find();
  if (!loops)
    return std::nullopt;
  found.columns = std::move(*loops);
  found.stageLoops = reductions->front().loops;
  AffineMap results = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (unsigned i = 0; i < results.getNumResults(); ++i)
    if (!llvm::is_contained(found.columns, results.getDimPosition(i)))
      found.outer.push_back(results.getDimPosition(i));
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      found.reduced.push_back(unsigned(loop));
  setExtents(context.kernel, found);
  if (found.mostOuter > mostResults || found.mostColumns > mostResults ||
      found.mostOuter * found.mostColumns > mostResults || found.mostLength < leastLengthOfNarrow ||
      found.mostLength > std::numeric_limits<int32_t>::max() / 2)
    return std::nullopt;
  addRun(context, found);
  const bool isNarrow = found.hasWholeRows() && found.width <= mostNarrow;
  const int64_t least = found.columns.empty() ? leastLengthOfOne : isNarrow ? leastLengthOfNarrow : leastLength;
  return found.mostLength >= least ? std::optional(std::move(found)) : std::nullopt;
}

} // namespace kiln::cuda
