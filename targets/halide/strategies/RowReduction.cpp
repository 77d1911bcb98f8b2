// SPDX-License-Identifier: Apache-2.0
//
// The strategy for norms, softmaxes, means and maxima: reductions whose other dimensions are dimensions of the result
// ("rows"). One row is computed at a time: its reductions, and values that several of them read, are kept in scratch
// memory that stays in the L1 cache, then the row is stored. Rows are distributed over the workers. A reduction along a
// dimension other than the innermost one computes a vector of rows at a time instead.
#include "targets/halide/Structure.h"
#include "targets/halide/strategies/Placement.h"
#include "llvm/ADT/BitVector.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Func;
using Halide::TailStrategy;
using Halide::Var;

namespace {

/// How the reductions of a kernel are aligned with its result. Dimensions count from the outermost one.
struct Rows {
  llvm::BitVector dims;                       // dimensions of the result that are rows
  llvm::DenseSet<Operation *> atRow;          // reductions that are computed per row
  llvm::DenseSet<Operation *> perRow;         // pointwise stages whose dimensions are all rows
  llvm::DenseMap<Operation *, int> innermost; // the dimension of the result that corresponds to an op's innermost one;
                                              // -1: none
  bool reducesInnermost = false;
  int64_t widest = 1; // extent of a reduction along the innermost dimension
};

std::optional<Rows> findRows(func::FuncOp kernel) {
  if (!hasOneResultShape(kernel))
    return std::nullopt;
  auto first = cast<RankedTensorType>(kernel.getResultTypes().front());
  Alignment alignment(kernel);
  Rows rows;
  rows.dims.resize(first.getRank());
  SmallVector<linalg::GenericOp> pointwise;
  for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>()) {
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    rows.innermost[op] = type.getRank() ? alignment.get(op.getResult(0), type.getRank() - 1) : -1;
    if (op.getNumReductionLoops() == 0) {
      pointwise.push_back(op);
      continue;
    }
    Value result = op.getResult(0);
    SmallVector<int> dims;
    for (Value each : op.getResults())
      for (unsigned i = 0, rank = cast<RankedTensorType>(result.getType()).getRank(); i < rank; ++i)
        dims.push_back(cast<RankedTensorType>(each.getType()).getDimSize(i) == 1 ? -2 : alignment.get(each, i));
    if (llvm::is_contained(dims, -1) || llvm::all_of(dims, [](int d) { return d < 0; }))
      continue;
    rows.atRow.insert(op);
    for (int dim : dims)
      if (dim >= 0)
        rows.dims.set(dim);
    if (readsAlongReduction(op)) {
      rows.reducesInnermost = true;
      rows.widest = std::max(rows.widest, innermostReduction(op));
    }
  }
  if (rows.atRow.empty())
    return std::nullopt;
  for (linalg::GenericOp op : pointwise) {
    Value result = op.getResult(0);
    bool isPerRow = op.getNumResults() == 1;
    for (unsigned i = 0, rank = cast<RankedTensorType>(result.getType()).getRank(); i < rank; ++i) {
      int at = alignment.get(result, i);
      isPerRow &= at >= 0 && rows.dims.test(at);
    }
    if (isPerRow && !llvm::is_contained(kernel.getBody().front().getTerminator()->getOperands(), result))
      rows.perRow.insert(op);
  }
  return rows;
}

/// Whether it pays to keep the stage's values of a row instead of computing them for each use.
bool isWorthKeeping(linalg::GenericOp op) {
  unsigned uses = 0;
  for (Value result : op.getResults())
    uses += std::distance(result.use_begin(), result.use_end());
  return uses > 1 && op.getBlock()->getOperations().size() > 1;
}

class RowReduction : public Strategy {
public:
  RowReduction(func::FuncOp kernel, Rows rows, const MachineModel &machine)
      : kernel(kernel), rows(std::move(rows)), alignment(kernel), machine(machine),
        lanes(vectorLanes(machine, widestElement(kernel))) {}

  llvm::StringRef name() const override { return "row_reduction"; }
  SearchSpace searchSpace() const override {
    std::vector<int64_t> vectors{1};
    while (vectors.back() < mostVectors && 2 * vectors.back() * lanes <= rows.widest)
      vectors.push_back(2 * vectors.back());
    if (isBatchInvariant(kernel))
      vectors = {mostVectors};
    SearchSpace space = taskParameters(kernel, {1024, 4096, 16384, 65536});
    space.push_back(makeParameter("vectors", vectors, mostVectors));
    // A vector of rows traverses columns, which are not streams.
    space.push_back(isVectorOfRows() ? makeParameter("prefetch", {0}, 0) : prefetchParameter(kernel, machine));
    return space;
  }
  void schedule(Translator &translator, const ScheduleConfig &config) override;

private:
  bool isUsedAtRow(Operation *op) const;
  Exprs columnExtents(Translator &translator, Value result) const;
  bool isVectorOfRows() const { return rows.dims.test(rows.dims.size() - 1) && !rows.reducesInnermost; }
  /// Whether a dimension of the output, counted from the innermost one, is a row dimension.
  bool isRow(const Output &output, unsigned dim) const { return rows.dims.test(output.rank() - 1 - dim); }
  std::vector<unsigned> orderLoops(const Output &output);
  void scheduleStore(const Output &output, const Tasks &tasks);
  bool isAtRow(Operation *op, const Stage &stage) const;
  bool readsStageAtRow(Translator &translator, Operation *op) const;
  void placeAtRow(Translator &translator, Operation *op, Stage &stage, Func store, int vectors);

  func::FuncOp kernel;
  Rows rows;
  Alignment alignment;
  const MachineModel &machine;
  int lanes;
  Var level{"row"};                         // the store's loop over rows
  const Var vector{"vector"}, lane{"lane"}; // loops of a vector of rows
};

/// Whether all uses of the op's results, directly or through inlined stages, are computed per row.
bool RowReduction::isUsedAtRow(Operation *op) const {
  for (Operation *user : op->getUsers()) {
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (!generic)
      generic = user->getParentOfType<linalg::GenericOp>();
    if (!generic)
      continue; // a result of the kernel
    if (generic.getNumReductionLoops() ? !rows.atRow.contains(generic) : !isUsedAtRow(generic))
      return false;
  }
  return true;
}

/// Returns the extents of a stage's result, innermost first; those of row dimensions are undefined.
Exprs RowReduction::columnExtents(Translator &translator, Value result) const {
  Exprs extents;
  for (unsigned i = cast<RankedTensorType>(result.getType()).getRank(); i-- > 0;) {
    const int at = alignment.get(result, i);
    extents.push_back(at >= 0 && rows.dims.test(at) ? Halide::Expr() : translator.extent(result, i));
  }
  return extents;
}

/// Orders the loops: columns inside, rows outside. Returns the row dimensions, innermost first, and sets `level` to the
/// loop of the innermost one.
std::vector<unsigned> RowReduction::orderLoops(const Output &output) {
  Func store = output.func;
  std::vector<Halide::VarOrRVar> order;
  std::vector<unsigned> rowDims;
  if (isVectorOfRows())
    order.push_back(lane);
  for (unsigned dim = 0; dim < output.rank(); ++dim) {
    if (isRow(output, dim))
      rowDims.push_back(dim);
    else
      order.push_back(dimensionVar(dim));
  }
  if (isVectorOfRows())
    store.split(dimensionVar(0), vector, lane, lanes, TailStrategy::GuardWithIf);
  for (unsigned dim : rowDims)
    order.push_back(isVectorOfRows() && dim == 0 ? vector : dimensionVar(dim));
  if (order.size() > 1)
    store.reorder(order);
  level = isVectorOfRows() ? vector : dimensionVar(rowDims.front());
  return rowDims;
}

/// Tasks are blocks of the outermost row dimension that has more than one row.
void RowReduction::scheduleStore(const Output &output, const Tasks &tasks) {
  Func store = output.func;
  const std::vector<unsigned> rowDims = orderLoops(output);
  unsigned outer = rowDims.back();
  while (outer != rowDims.front() && output.bounds[outer] == 1)
    outer = *std::prev(llvm::find(rowDims, outer));
  int64_t inner = 1;
  for (unsigned dim = 0; dim < output.rank(); ++dim)
    if (dim != outer && (dim < outer || !isRow(output, dim)))
      inner *= output.bounds[dim];
  if (!isVectorOfRows() || outer != 0) {
    Var block("block"), within("within");
    if (Halide::Expr extent = taskExtent(output, outer, inner, tasks); extent.defined()) {
      store.split(dimensionVar(outer), block, within, extent, TailStrategy::GuardWithIf).parallel(block);
      if (outer == rowDims.front())
        level = within;
    }
  } else {
    store.parallel(vector);
  }
  if (isVectorOfRows())
    store.vectorize(lane);
  else if (!isRow(output, 0))
    vectorizeGuarded(store, dimensionVar(0), output.extents[0], lanes);
}

/// Whether the stage is computed per row.
bool RowReduction::isAtRow(Operation *op, const Stage &stage) const {
  const bool isKept =
      rows.atRow.contains(op) ||
      (!stage.isReduction && (rows.perRow.contains(op) || isWorthKeeping(stage.op) || isReadBack(stage.op)));
  return isKept && isUsedAtRow(op);
}

/// Whether the op reads a stage that is computed per row, directly or through stages that are inlined.
bool RowReduction::readsStageAtRow(Translator &translator, Operation *op) const {
  auto isAtRowOrReads = [&](Value operand) {
    Operation *source = operand.getDefiningOp();
    auto found = translator.stages.find(source);
    return found != translator.stages.end() && (isAtRow(source, found->second) || readsStageAtRow(translator, source));
  };
  return op
      ->walk([&](Operation *each) { // ops of its body gather elements, too
        return llvm::any_of(each->getOperands(), isAtRowOrReads) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Places the part of a stage that a row needs.
void RowReduction::placeAtRow(Translator &translator, Operation *op, Stage &stage, Func store, int vectors) {
  const int innermostAt = rows.innermost.lookup(op);
  const bool isOfRows = innermostAt >= 0 && rows.dims.test(innermostAt),
             isAlong = rows.atRow.contains(op) && !isVectorOfRows() && readsAlongReduction(stage.op);
  for (auto [number, func] : llvm::enumerate(stage.funcs)) {
    func.compute_at(store, level);
    if (isAlong) {
      vectorizeReduction(stage, lanes, vectors, [&](Func part) { part.compute_at(store, level); });
      continue;
    }
    Func parts;
    if (isSharedSum(stage) && !readsStageAtRow(translator, op)) {
      placeSharedParts(translator, sumInParts(stage), op->getResult(number), lanes);
    } else if (isLongSum(stage)) {
      parts = sumInParts(stage);
      parts.compute_at(store, level);
    }
    padOuterStorage(func, columnExtents(translator, op->getResult(number)));
    if (func.dimensions() == 0 || (isOfRows && !isVectorOfRows()))
      continue;
    Halide::Expr extent = translator.extent(op->getResult(number), func.dimensions() - 1);
    auto vectorize = [&](Func each) {
      if (isOfRows)
        each.align_storage(dimensionVar(0), lanes); // it is at most a vector wide
      else
        padStorage(each, extent, lanes);
      vectorizeGuarded(each, dimensionVar(0), extent, lanes);
      for (int update = 0; update < each.num_update_definitions(); ++update)
        vectorizeGuarded(each.update(update), dimensionVar(0), extent, lanes);
    };
    if (parts.defined())
      vectorize(parts);
    vectorize(func);
  }
}

void RowReduction::schedule(Translator &translator, const ScheduleConfig &config) {
  const Output &output = translator.outputs.front();
  scheduleStore(output, tasksOf(config));
  llvm::DenseSet<Operation *> placed;
  for (auto &[op, stage] : translator.stages)
    if (isAtRow(op, stage)) {
      placed.insert(op);
      placeAtRow(translator, op, stage, output.func, int(config.at("vectors")));
    }
  placeAtRoot(translator, placed, lanes);
  // The last pass over a row prefetches the next row.
  prefetchStreams(translator, config.at("prefetch"), rows.widest, 1);
}

} // namespace

std::unique_ptr<Strategy> matchRowReduction(func::FuncOp kernel, const MachineModel &machine) {
  std::optional<Rows> rows = findRows(kernel);
  return rows ? std::make_unique<RowReduction>(kernel, std::move(*rows), machine) : nullptr;
}

} // namespace kiln::halide
