// SPDX-License-Identifier: Apache-2.0
//
// out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, n, k], with what follows element by element fused at the
// tile.
//
// 1. a is packed into [m / tile][k][tile] with its last row repeated; b is read in its stored tiles, or packed the same
// way if it is dense.
// 2. A register tile of m x n accumulators runs over k. Row and column tiles are always full; only the store is
// guarded, so that one
//    code serves any number of rows.
// 3. Columns are the outer loop: a panel of b stays in the cache while the rows pass. A long k is cut into blocks,
// whose sums are added
//    to the panel's accumulators in memory. Many rows are cut into blocks too, which bounds the memory of packed rows.
#include "targets/halide/FewRows.h"
#include "targets/halide/Placement.h"
#include "targets/halide/Structure.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;

namespace {

/// A contraction of the kernel and its Funcs.
struct Tiled {
  Contraction shape;
  unsigned rowDim = 0; // Halide dimension of the rows in the output
  unsigned rank = 0;
  bool isFused = false;  // stored by the kernel's output, not by a Func of its own
  Func packedA, packedB; // undefined: read in place
  Func tile;             // the register tile
  RDom depth;            // its reduction
  Func panel;            // sums of k blocks; undefined without blocks
  RDom blocks;
  Func store;    // undefined if fused
  Exprs extents; // of the output, innermost first
  std::vector<Var> batchA, batchB;
};

class ContractionStrategy : public Strategy {
public:
  ContractionStrategy(SmallVector<Contraction> contractions, const MachineModel &machine)
      : contractions(std::move(contractions)), machine(machine), lanes(vectorLanes(machine)) {}

  llvm::StringRef name() const override { return "contraction"; }
  SearchSpace searchSpace() const override;
  std::vector<RowVariant> rowVariants() const override {
    return fewRowsVariants(contractions.front().op->getParentOfType<func::FuncOp>(), machine);
  }
  void prepare(Translator &translator, const SchedulePoint &point) override;
  void schedule(Translator &translator, const SchedulePoint &point) override;

private:
  Func build(Translator &translator, Tiled &tiled);
  void scheduleTiles(Func store, llvm::ArrayRef<Tiled *> group);
  void schedulePacking(Tiled &tiled, Func store, Var rowBlock, Var batch, bool hasBatch);

  SmallVector<Contraction> contractions;
  std::vector<std::unique_ptr<Tiled>> tiles;
  MachineModel machine;
  int lanes;
  int tileRows = 0, tileColumns = 0, blockDepth = 0, blockRows = 0;
};

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> result;
  for (int64_t i = 1; i <= number; ++i)
    if (number % i == 0)
      result.push_back(i);
  return result;
}

SearchSpace ContractionStrategy::searchSpace() const {
  // The accumulators, one row of b and two broadcast values share the registers.
  const Contraction &first = contractions.front();
  int64_t stored = first.tile, widest = 3 * lanes;
  if (machine.vectorRegisters < 32)
    widest = 2 * lanes;
  std::vector<int64_t> columns, rows{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16};
  for (int64_t n = lanes; n <= 6 * lanes; n += lanes)
    if (stored == 0 || stored % n == 0)
      columns.push_back(n);
  if (columns.empty())
    columns.push_back(lanes);
  TuningParameter n = makeParameter("n", columns, stored ? std::min(stored, widest) : widest);
  int64_t perRow = n.preset / lanes;
  int64_t m = std::max<int64_t>(1, (machine.vectorRegisters - perRow - 2) / perRow);
  int64_t mostRows = first.m ? largestExtent(first.op, *first.m) : 1;
  m = std::min({m, mostRows, int64_t(8)});

  SearchSpace space{makeParameter("m", rows, m), n,
                    makeParameter("rows_block", {0, 128, 256, 512}, mostRows > 256 ? 256 : 0)};
  int64_t depth = first.reduction.size() == 1 ? staticExtent(first.op, first.reduction[0]) : ShapedType::kDynamic;
  if (!ShapedType::isDynamic(depth) && contractions.size() == 1) {
    // A panel block of b takes up to a quarter of the second level cache.
    std::vector<int64_t> blocks;
    for (int64_t d : divisors(depth))
      if (d >= 64 || d == depth)
        blocks.push_back(d);
    int64_t wanted = machine.l2Bytes / 4 / int64_t(sizeof(float)) / n.preset;
    space.push_back(makeParameter("k_block", blocks, depth <= wanted * 3 / 2 ? depth : wanted));
  }
  return space;
}

void ContractionStrategy::prepare(Translator &translator, const SchedulePoint &point) {
  tileRows = point.at("m");
  tileColumns = point.at("n");
  blockDepth = point.count("k_block") ? point.at("k_block") : 0;
  blockRows = point.at("rows_block") / tileRows * tileRows;
  for (const Contraction &contraction : contractions) {
    tiles.push_back(std::make_unique<Tiled>());
    Tiled &tiled = *tiles.back();
    tiled.shape = contraction;
    tiled.isFused = hasPointwiseUses(contraction.op);
    translator.setBuilder(contraction.op,
                          [this, &translator, &tiled](linalg::GenericOp) { return build(translator, tiled); });
  }
}

Func ContractionStrategy::build(Translator &translator, Tiled &tiled) {
  const Contraction &shape = tiled.shape;
  linalg::GenericOp op = shape.op;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  tiled.rank = out.getNumResults();
  std::vector<Var> vars;
  Exprs loops(op.getNumLoops());
  for (unsigned i = 0; i < tiled.rank; ++i) {
    unsigned loop = out.getDimPosition(tiled.rank - 1 - i);
    vars.push_back(dimensionVar(i));
    loops[loop] = vars.back();
    tiled.extents.push_back(translator.loopExtent(op, loop));
    if (shape.m && loop == *shape.m)
      tiled.rowDim = i;
  }
  AffineMap maps[2] = {op.getIndexingMapsArray()[shape.a], op.getIndexingMapsArray()[shape.b]};
  for (unsigned loop : shape.batch) {
    Var var(loops[loop].as<Halide::Internal::Variable>()->name);
    if (maps[0].isFunctionOfDim(loop))
      tiled.batchA.push_back(var);
    if (maps[1].isFunctionOfDim(loop))
      tiled.batchB.push_back(var);
  }

  // Packing: innermost the position in the tile, then k, the tile, and the batch loops that the operand depends on.
  Var lane("lane"), group("group");
  std::vector<Var> depthVars;
  for (unsigned i = 0; i < shape.reduction.size(); ++i)
    depthVars.push_back(Var("k" + std::to_string(i)));
  auto pack = [&](StringRef name, unsigned operand, unsigned loop, int size, ArrayRef<Var> batch) {
    std::vector<Var> packedVars{lane};
    packedVars.insert(packedVars.end(), depthVars.rbegin(), depthVars.rend());
    packedVars.push_back(group);
    packedVars.insert(packedVars.end(), batch.begin(), batch.end());
    Exprs at = loops;
    for (auto [i, reduction] : llvm::enumerate(shape.reduction))
      at[reduction] = depthVars[i];
    at[loop] = Halide::min(Halide::likely(group * size + lane), translator.loopExtent(op, loop) - 1);
    Func packed(translator.name(name));
    packed(packedVars) = translator.readOperand(op, operand, at);
    return packed;
  };
  if (shape.m)
    tiled.packedA = pack("packed_a", shape.a, *shape.m, tileRows, tiled.batchA);
  if (shape.tile == 0)
    tiled.packedB = pack("packed_b", shape.b, shape.n, tileColumns, tiled.batchB);
  auto readPacked = [&](Func packed, unsigned loop, int size, ArrayRef<Var> batch, const Exprs &at) -> Expr {
    Exprs indices{at[loop] % size};
    for (unsigned reduction : llvm::reverse(shape.reduction))
      indices.push_back(at[reduction]);
    indices.push_back(at[loop] / size);
    indices.insert(indices.end(), batch.begin(), batch.end());
    return packed(indices);
  };

  // The tile: a Func of its own, so that its sums are held in registers.
  bool isBlocked = blockDepth > 0 && blockDepth < staticExtent(op, shape.reduction[0]);
  Halide::Region region;
  for (unsigned reduction : llvm::reverse(shape.reduction))
    region.push_back({0, isBlocked ? Expr(blockDepth) : translator.loopExtent(op, reduction)});
  tiled.depth = RDom(region, translator.name("k"));
  for (unsigned i = 0; i < shape.reduction.size(); ++i)
    loops[shape.reduction[shape.reduction.size() - 1 - i]] = tiled.depth[i];
  std::vector<Var> tileVars = vars;
  Var block("block");
  if (isBlocked) {
    tileVars.push_back(block);
    loops[shape.reduction[0]] = block * blockDepth + tiled.depth[0];
  }
  Halide::Type type = elementType(getElementTypeOrSelf(op.getResult(0)));
  tiled.tile = Func(translator.name("tile"));
  tiled.tile(tileVars) = Halide::Internal::make_zero(type);
  Exprs tileIndices(tileVars.begin(), tileVars.end());
  Exprs values = translator.body(op, loops, [&](unsigned number) -> Expr {
    if (number == shape.a && shape.m)
      return readPacked(tiled.packedA, *shape.m, tileRows, tiled.batchA, loops);
    if (number == shape.b && shape.tile == 0)
      return readPacked(tiled.packedB, shape.n, tileColumns, tiled.batchB, loops);
    return number == shape.a || number == shape.b ? translator.readOperand(op, number, loops)
                                                  : Expr(tiled.tile(tileIndices));
  });
  if (values.empty())
    return Func();
  tiled.tile(tileIndices) = values[0];

  Func result = tiled.tile;
  if (isBlocked) {
    tiled.blocks = RDom({{0, int(staticExtent(op, shape.reduction[0]) / blockDepth)}}, translator.name("blocks"));
    tiled.panel = Func(translator.name("panel"));
    tiled.panel(vars) = Halide::Internal::make_zero(type);
    tileIndices.back() = tiled.blocks.x;
    tiled.panel(vars) += tiled.tile(tileIndices);
    result = tiled.panel;
  }
  if (!tiled.isFused) {
    tiled.store = Func(translator.name("sums"));
    tiled.store(vars) = result(vars);
    result = tiled.store;
  }
  return result;
}

void ContractionStrategy::schedulePacking(Tiled &tiled, Func store, Var rowBlock, Var batch, bool hasBatch) {
  std::pair<Func, int> packs[] = {{tiled.packedA, tileRows}, {tiled.packedB, tileColumns}};
  for (auto [packed, size] : packs) {
    if (!packed.defined())
      continue;
    bool isRows = packed.name() == tiled.packedA.name();
    if (isRows && blockRows)
      packed.compute_at(store, rowBlock);
    else if (hasBatch)
      packed.compute_at(store, batch);
    else
      packed.compute_root();
    if (!hasBatch)
      packed.parallel(Var("group"));
    packed.bound(Var("lane"), 0, size);
    if (size % lanes == 0)
      packed.vectorize(Var("lane"), lanes);
    packed.unroll(Var("lane"));
  }
}

void ContractionStrategy::scheduleTiles(Func store, ArrayRef<Tiled *> group) {
  Tiled &first = *group.front();
  Var d0 = dimensionVar(0), rows = dimensionVar(first.rowDim);
  Var column("column"), vector("vector"), lane("lane"), within("within"), row("row"), inRow("in_row"),
      rowBlock("row_block");
  bool hasRows = first.shape.m.has_value(), isBlocked = first.panel.defined();

  // Columns: a guard of whole vectors where the extent allows it.
  const int64_t *fixed = Halide::Internal::as_const_int(first.extents[0]);
  if (fixed && *fixed % lanes == 0) {
    store.split(d0, vector, lane, lanes).split(vector, column, within, tileColumns / lanes, TailStrategy::GuardWithIf);
  } else {
    store.split(d0, column, within, tileColumns, TailStrategy::GuardWithIf).split(within, within, lane, lanes);
  }
  store.vectorize(lane).unroll(within);
  std::vector<Halide::VarOrRVar> order{lane, within};
  Var rowLoop = rows;
  if (hasRows && !isBlocked) {
    store.split(rows, row, inRow, tileRows, TailStrategy::GuardWithIf).unroll(inRow);
    order.push_back(inRow);
    rowLoop = row;
  }
  bool hasRowBlocks = hasRows && blockRows > 0;
  if (hasRowBlocks)
    store.split(rowLoop, rowBlock, rowLoop, isBlocked ? blockRows : blockRows / tileRows, TailStrategy::GuardWithIf);
  if (hasRows)
    order.push_back(rowLoop);
  order.push_back(column);
  if (hasRowBlocks)
    order.push_back(rowBlock);
  std::vector<Var> batch;
  for (unsigned i = 1; i < first.rank; ++i)
    if (!hasRows || i != first.rowDim)
      batch.push_back(dimensionVar(i));
  for (Var var : batch)
    order.push_back(var);
  store.reorder(order);
  if (batch.empty())
    store.parallel(column);
  else
    store.parallel(batch.back());

  for (Tiled *tiled : group) {
    schedulePacking(*tiled, store, rowBlock, batch.empty() ? Var() : batch.front(), !batch.empty());
    Func tile = tiled->tile;
    if (isBlocked) {
      Func panel = tiled->panel;
      panel.compute_at(store, column).store_in(Halide::MemoryType::Heap);
      panel.bound_extent(d0, tileColumns).align_bounds(d0, tileColumns).vectorize(d0, lanes).unroll(d0);
      Halide::Stage update = panel.update();
      std::vector<Halide::VarOrRVar> updateOrder{d0};
      if (hasRows) {
        panel.align_bounds(rows, tileRows);
        update.split(rows, row, inRow, tileRows, TailStrategy::RoundUp);
        updateOrder.push_back(inRow);
        updateOrder.push_back(row);
      }
      updateOrder.push_back(tiled->blocks.x);
      update.reorder(updateOrder).vectorize(d0, lanes).unroll(d0);
      if (hasRows)
        update.unroll(inRow);
      if (hasRows)
        tile.compute_at(panel, row);
      else
        tile.compute_at(panel, tiled->blocks.x);
    } else {
      tile.compute_at(store, hasRows ? row : column);
    }
    tile.bound_extent(d0, tileColumns).align_bounds(d0, tileColumns).vectorize(d0, lanes).unroll(d0);
    Halide::Stage update = tile.update();
    std::vector<Halide::VarOrRVar> updateOrder{d0};
    if (hasRows) {
      tile.bound_extent(rows, tileRows).align_bounds(rows, tileRows).unroll(rows);
      updateOrder.push_back(rows);
    }
    for (int i = 0; i < tiled->depth.dimensions(); ++i)
      updateOrder.push_back(tiled->depth[i]);
    update.reorder(updateOrder).vectorize(d0, lanes).unroll(d0);
    if (hasRows)
      update.unroll(rows);
  }
}

void ContractionStrategy::schedule(Translator &translator, const SchedulePoint &) {
  protectInPlaceArguments(translator);
  llvm::DenseSet<Operation *> placed;
  std::vector<Tiled *> fused;
  for (auto &tiled : tiles) {
    placed.insert(tiled->shape.op);
    if (tiled->isFused) {
      fused.push_back(tiled.get());
      continue;
    }
    tiled->store.compute_root();
    for (unsigned i = 0; i < tiled->rank; ++i)
      tiled->store.bound(dimensionVar(i), 0, tiled->extents[i]);
    scheduleTiles(tiled->store, {tiled.get()});
  }
  placeAtRoot(translator, placed, lanes);
  for (const Output &output : translator.outputs) {
    if (!fused.empty())
      scheduleTiles(output.func, fused);
    else
      scheduleStore(output, lanes, {16384});
  }
}

} // namespace

/// Whether two contractions can share the tiles of one store.
static bool haveSameTiles(const Contraction &a, const Contraction &b) {
  auto position = [](const Contraction &c, unsigned loop) {
    linalg::GenericOp op = c.op;
    return op.getMatchingIndexingMap(op.getDpsInitOperand(0))
        .getResultPosition(getAffineDimExpr(loop, op->getContext()));
  };
  return a.m.has_value() == b.m.has_value() && (!a.m || position(a, *a.m) == position(b, *b.m)) && a.tile == b.tile;
}

std::unique_ptr<Strategy> matchContraction(func::FuncOp kernel, const MachineModel &machine) {
  SmallVector<Contraction> contractions;
  for (linalg::GenericOp op : kernel.getOps<linalg::GenericOp>()) {
    std::optional<Contraction> contraction = asContraction(op);
    if (!contraction || (contraction->tile && contraction->tile % vectorLanes(machine)))
      continue;
    if (!contraction->m && contraction->tile == 0)
      continue; // a product with one vector: no reuse that would pay for packing
    if (!contractions.empty() && !haveSameTiles(contractions.front(), *contraction))
      continue;
    contractions.push_back(*contraction);
  }
  if (contractions.empty())
    return nullptr;
  return std::make_unique<ContractionStrategy>(std::move(contractions), machine);
}

} // namespace kiln::halide
