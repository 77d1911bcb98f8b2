// SPDX-License-Identifier: Apache-2.0
//
// GEMM: out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, n, k], with the elementwise epilogue fused at the
// register tile.
//
// 1. a is read in place if its rows are contiguous along k, or packed into [m / tile][k][tile], where the last row
//    stands in for rows after it. b is read in its stored tiles. It is packed if it is dense or tiled along k, as a
//    frozen weight is that a gradient flows through.
// 2. A register tile of m x n accumulators iterates over k. Row and column tiles are always full and only the store is
//    guarded, so that the same code serves any number of rows.
// 3. Several partial sums over k are added to a total on the stack, over whose rows the epilogue loops. Neither Halide
//    nor LLVM may unroll the loops over partial sums or rows: LLVM would promote the total to registers and keep the
//    accumulators of the loop over k on the stack instead (M-0131, M-0170).
// 4. Columns are the outer loop: a panel of b stays in the cache while the rows pass (M-0106). A long k is cut into
//    blocks, whose sums are added to the panel's accumulators in memory (M-0104). Many rows are cut into blocks too,
//    which bounds the memory of packed rows.
//
// If a is i8 and b has the interleaved (VNNI) layout, products are accumulated as integers, several per instruction,
// and the rows of a are packed into words beforehand. If b is i4, each group has an integer sum, which is multiplied by
// the group's scale and added up as f32.
#include "targets/halide/strategies/Contraction.h"
#include "targets/halide/strategies/Placement.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Func;
using Halide::TailStrategy;
using Halide::Var;

namespace {

class ContractionStrategy : public Strategy {
public:
  ContractionStrategy(std::vector<Contraction> given, const MachineModel &machine)
      : contractions(std::move(given)), machine(machine), lanes(vectorLanes(machine, contractions.front().sumType())) {}

  llvm::StringRef name() const override { return "contraction"; }
  SearchSpace searchSpace() const override { return contractionSpace(contractions, machine); }
  std::vector<ShapeVariant> shapeVariants() const override {
    return contractions.size() == 1 ? contractionVariants(contractions.front(), machine) : std::vector<ShapeVariant>();
  }
  void prepare(Translator &translator, const ScheduleConfig &config) override;
  void schedule(Translator &translator, const ScheduleConfig &config) override;

private:
  void scheduleStore(Func store, llvm::ArrayRef<Tiled *> group);
  void scheduleLoops(Func store, const Tiled &first, std::vector<Halide::VarOrRVar> order);
  void scheduleTile(Func tile, Var rows, bool hasRows);
  void scheduleK(const Tiled &tiled, Var rows, bool hasRows);
  void scheduleSums(Tiled &tiled, Func store, Var rows);
  void scheduleInterleaved(Tiled &tiled, Func store, Var batch, bool hasBatch);
  void schedulePacking(Tiled &tiled, Func store, Var batch, bool hasBatch);

  std::vector<Contraction> contractions;
  std::vector<std::unique_ptr<Tiled>> tiles;
  MachineModel machine;
  int lanes;
  ContractionSchedule config;
};

const Var column = ColumnLoops().column, inRow("in_row"), rowTile("row"), task("task");

void ContractionStrategy::prepare(Translator &translator, const ScheduleConfig &given) {
  config = readContractionSchedule(given);
  for (const Contraction &contraction : contractions) {
    tiles.push_back(std::make_unique<Tiled>());
    Tiled &tiled = *tiles.back();
    tiled.shape = contraction;
    tiled.isFused = hasPointwiseUses(contraction.op);
    translator.setBuilder(contraction.op, [this, &translator, &tiled](linalg::GenericOp) {
      return buildContraction(translator, config, tiled);
    });
  }
}

void ContractionStrategy::schedulePacking(Tiled &tiled, Func store, Var batch, bool hasBatch) {
  if (tiled.words.defined())
    scheduleInterleaved(tiled, store, batch, hasBatch);
  std::pair<Func, int> packs[] = {{tiled.packedA, config.tileRows}, {tiled.packedB, config.tileColumns}};
  for (auto [packed, size] : packs) {
    if (!packed.defined())
      continue;
    bool isRows = tiled.packedA.defined() && packed.name() == tiled.packedA.name();
    if (isRows && config.blockRows && config.split != Split::Both)
      packed.compute_at(store, rowBlock);
    else if (hasBatch)
      packed.compute_at(store, batch);
    else
      packed.compute_root();
    if (!hasBatch && !(isRows && config.split == Split::Rows))
      packed.parallel(Var("group"));
    packed.bound(Var("lane"), 0, size);
    if (size % lanes == 0)
      packed.vectorize(Var("lane"), lanes);
    packed.unroll(Var("lane"));
  }
}

/// Places the interleaved rows of a and the sums of their groups where packed rows would be computed.
void ContractionStrategy::scheduleInterleaved(Tiled &tiled, Func store, Var batch, bool hasBatch) {
  const Var row("row"), within("within");
  const bool hasRows = tiled.shape.m.has_value();
  constexpr int taskRows = 16;
  for (Func func : {tiled.words, tiled.groupSums}) {
    if (!func.defined())
      continue;
    if (hasRows && config.blockRows && config.split != Split::Both)
      func.compute_at(store, rowBlock);
    else if (hasBatch)
      func.compute_at(store, batch);
    else
      func.compute_root();
    if (hasRows && !hasBatch && config.split != Split::Rows && !func.has_update_definition())
      func.split(row, row, within, taskRows, TailStrategy::GuardWithIf).parallel(row);
  }
  const int64_t words = staticSteps(tiled.shape) * rowInterleavesPerStep(tiled.shape);
  vectorizeGuarded(tiled.words, Var("word"), Halide::Expr(int(words)), lanes);
  if (tiled.groupSums.defined())
    tiled.groupSums.update().atomic().vectorize(tiled.within.x, lanes);
}

/// Schedules a register tile with all its vectors unrolled.
void ContractionStrategy::scheduleTile(Func tile, Var rows, bool hasRows) {
  Var d0 = dimensionVar(0);
  tile.bound_extent(d0, config.tileColumns).align_bounds(d0, config.tileColumns).vectorize(d0, lanes).unroll(d0);
  if (hasRows)
    tile.bound_extent(rows, config.tileRows).align_bounds(rows, config.tileRows).unroll(rows);
}

/// Schedules the K loop of a register tile.
void ContractionStrategy::scheduleK(const Tiled &tiled, Var rows, bool hasRows) {
  Var d0 = dimensionVar(0);
  Func tile = tiled.tile;
  Halide::Stage update = tile.update();
  std::vector<Halide::VarOrRVar> order{d0};
  if (hasRows)
    order.push_back(rows);
  if (config.unroll > 1) {
    Halide::RVar steps("steps"), step("step");
    update.split(tiled.reduction.x, steps, step, config.unroll);
    order.push_back(step);
    order.push_back(steps);
    update.reorder(order).unroll(step);
  } else {
    for (int i = 0; i < tiled.reduction.dimensions(); ++i)
      order.push_back(tiled.reduction[i]);
    update.reorder(order);
  }
  update.vectorize(d0, lanes).unroll(d0);
  if (hasRows)
    update.unroll(rows);
}

/// Schedules the register tiles and their accumulation: into a panel if there are several blocks of k, or into a total
/// per tile if there are several partial sums.
void ContractionStrategy::scheduleSums(Tiled &tiled, Func store, Var rows) {
  Var d0 = dimensionVar(0);
  bool hasRows = tiled.shape.m.has_value();
  Func tile = tiled.tile, total = tiled.total, panel = tiled.panel;
  scheduleTile(tile, rows, hasRows);
  scheduleK(tiled, rows, hasRows);
  const Var tileLoop = hasRows && !config.isRowsOuter ? rowTile : column;
  if (!total.defined() && !panel.defined()) {
    tile.compute_at(store, tileLoop);
    return;
  }
  Func sums = panel.defined() ? panel : total;
  Halide::Stage update = sums.update();
  std::vector<Halide::VarOrRVar> order{d0};
  if (panel.defined()) {
    panel.compute_at(store, config.split == Split::Both ? task : column).store_in(Halide::MemoryType::Heap);
    panel.bound_extent(d0, config.tileColumns).align_bounds(d0, config.tileColumns).vectorize(d0, lanes).unroll(d0);
    if (hasRows) {
      panel.align_bounds(rows, config.tileRows);
      update.split(rows, rowTile, inRow, config.tileRows, TailStrategy::RoundUp).unroll(inRow);
      order.insert(order.end(), {inRow, tiled.pieces.x, rowTile});
    } else {
      order.push_back(tiled.pieces.x);
    }
    order.push_back(tiled.pieces.y);
  } else {
    total.compute_at(store, tileLoop).store_in(Halide::MemoryType::Stack);
    scheduleTile(total, rows, hasRows);
    if (hasRows) {
      update.unroll(rows);
      order.push_back(rows);
    }
    order.push_back(tiled.pieces.x);
  }
  update.reorder(order).vectorize(d0, lanes).unroll(d0);
  tile.compute_at(sums, tiled.pieces.x);
}

static std::vector<Var> batchLoops(const Tiled &tiled) {
  std::vector<Var> batch;
  for (unsigned i = 1; i < tiled.rank; ++i)
    if (!tiled.shape.m || i != tiled.rowDim)
      batch.push_back(dimensionVar(i));
  return batch;
}

/// Schedules the loops over panels and rows outside of the loops of `order`, which are inside of a panel.
void ContractionStrategy::scheduleLoops(Func store, const Tiled &first, std::vector<Halide::VarOrRVar> order) {
  const Var rows = dimensionVar(first.rowDim);
  bool hasRows = first.shape.m.has_value(), isBlocked = first.panel.defined();
  Var rowLoop = rows;
  if (hasRows && !isBlocked) {
    store.split(rows, rowTile, inRow, config.tileRows, TailStrategy::GuardWithIf);
    if (!first.total.defined())
      store.unroll(inRow);
    order.push_back(inRow);
    rowLoop = rowTile;
  }
  bool hasRowBlocks = hasRows && config.blockRows > 0;
  if (hasRowBlocks)
    store.split(rowLoop, rowBlock, rowLoop, isBlocked ? config.blockRows : config.blockRows / config.tileRows,
                TailStrategy::GuardWithIf);
  if (hasRows && !config.isRowsOuter)
    order.push_back(rowLoop);
  // For tasks over both rows and columns, the tasks of a panel follow each other.
  if (config.split == Split::Both)
    order.push_back(rowBlock);
  order.push_back(column);
  if (hasRows && config.isRowsOuter)
    order.push_back(rowLoop);
  if (hasRowBlocks && config.split != Split::Both)
    order.push_back(rowBlock);
  const std::vector<Var> batch = batchLoops(first);
  for (Var var : batch)
    order.push_back(var);
  store.reorder(order);
  if (!batch.empty())
    store.parallel(batch.back());
  else if (config.split == Split::Rows)
    store.parallel(hasRowBlocks ? rowBlock : rowLoop);
  else if (config.split == Split::Both)
    store.fuse(rowBlock, column, task).parallel(task);
  else if (config.task > 1)
    store.split(column, task, column, config.task, TailStrategy::GuardWithIf).parallel(task);
  else
    store.parallel(column);
}

void ContractionStrategy::scheduleStore(Func store, ArrayRef<Tiled *> group) {
  Tiled &first = *group.front();
  ColumnLoops columns = splitColumns(store, first.extents[0], config.tileColumns, lanes);
  scheduleLoops(store, first, {columns.lane, columns.vector});
  std::vector<Var> batch = batchLoops(first);
  for (Tiled *tiled : group) {
    schedulePacking(*tiled, store, batch.empty() ? Var() : batch.front(), !batch.empty());
    scheduleSums(*tiled, store, dimensionVar(first.rowDim));
  }
}

void ContractionStrategy::schedule(Translator &translator, const ScheduleConfig &) {
  llvm::DenseSet<Operation *> placed;
  std::vector<Tiled *> fused;
  for (auto &tiled : tiles) {
    placed.insert(tiled->shape.op);
    translator.keepsLoops |= tiled->total.defined();
    // Panels and their blocks are contiguous, in the order in which they are read.
    const Contraction &shape = tiled->shape;
    if (config.ahead)
      translator.prefetch(shape.op, shape.b, config.ahead * shape.tile);
    if (config.prefetch)
      translator.prefetch(shape.op, shape.b, int64_t(config.blockK) * config.tileColumns, config.prefetch, "row");
    if (tiled->isFused) {
      fused.push_back(tiled.get());
      continue;
    }
    tiled->store.compute_root();
    for (unsigned i = 0; i < tiled->rank; ++i)
      tiled->store.bound(dimensionVar(i), 0, tiled->extents[i]);
    padColumns(tiled->store, tiled->extents, config.tileColumns, lanes);
    scheduleStore(tiled->store, {tiled.get()});
  }
  placeAtRoot(translator, placed, lanes);
  for (const Output &output : translator.outputs) {
    if (!fused.empty())
      scheduleStore(output.func, fused);
    else
      halide::scheduleStore(output, lanes, Tasks());
  }
}

} // namespace

/// Whether two contractions can share the tiles of one store.
static bool haveSameTiles(const Contraction &a, const Contraction &b, const MachineModel &machine) {
  auto position = [](const Contraction &c, unsigned loop) {
    linalg::GenericOp op = c.op;
    return op.getMatchingIndexingMap(op.getDpsInitOperand(0))
        .getResultPosition(getAffineDimExpr(loop, op->getContext()));
  };
  return a.m.has_value() == b.m.has_value() && (!a.m || position(a, *a.m) == position(b, *b.m)) && a.tile == b.tile &&
         vectorLanes(machine, a.sumType()) == vectorLanes(machine, b.sumType());
}

std::unique_ptr<Strategy> matchContraction(func::FuncOp kernel, const MachineModel &machine) {
  std::vector<Contraction> contractions;
  for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>()) {
    std::optional<Contraction> contraction = asContraction(op);
    if (!contraction || (contraction->tile && contraction->tile % vectorLanes(machine, contraction->sumType())))
      continue;
    if (!contraction->m && contraction->tile == 0 && !isBatchInvariant(kernel))
      continue; // a GEMV with a dense b: no reuse that would pay for packing
    if (!contractions.empty() && !haveSameTiles(contractions.front(), *contraction, machine))
      continue;
    contractions.push_back(*contraction);
  }
  if (contractions.empty())
    return nullptr;
  return std::make_unique<ContractionStrategy>(std::move(contractions), machine);
}

} // namespace kiln::halide
