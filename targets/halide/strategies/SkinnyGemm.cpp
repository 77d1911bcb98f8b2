// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMM and GEMV: y[m, n] = sum over k of x[m, k] * w[n, k] with a tiled weight and few rows. Reading the weight
// dominates the run time.
//
// 1. Panels of columns are the outer loop; the weight is read once, in storage order. The rows of x are read in place.
// 2. Rows are cut into tiles of equal height. There is code for each height, with that many accumulators per column
//    vector, and a call uses one height: no row is computed in vain, except for a remainder.
// 3. A single row has too few accumulators to hide the latency of an addition, so it has n partial sums, each over
//    every n-th k.
// 4. Rows of x with elements narrower than f32 are widened once, to a copy.
// 5. The sums of a panel are held on the stack, from which a loop over rows stores them with the fused epilogue.
#include "targets/halide/strategies/SkinnyGemm.h"

#include "compiler/dialect/StoredParts.h"
#include "targets/halide/Structure.h"
#include "targets/halide/strategies/Placement.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::TailStrategy;
using Halide::Var;

namespace {

/// The accumulators of a tile of `height` rows.
struct RowTile {
  int height = 0, partialSums = 1;
  Func sums;      // d0, row in the tile, tile, part
  RDom reduction; // reduction domain of `sums`
  Func group;     // with groups: the sums of one group; d0, row in the tile, tile, group
  RDom groups;    // with groups: reduction domain of `sums`; `reduction` is that of `group`
  RDom rows;      // domain of the update of `held` that reads the tile: row in the tile, tile
};

class SkinnyGemmStrategy : public Strategy {
public:
  SkinnyGemmStrategy(Contraction contraction, const MachineModel &machine)
      : shape(std::move(contraction)), machine(machine), lanes(vectorLanes(machine, shape.sumType())),
        range(rowsOf(shape)) {}

  llvm::StringRef name() const override { return "skinny_gemm"; }
  SearchSpace searchSpace() const override { return skinnyGemmSpace(shape, machine); }
  std::vector<ShapeVariant> shapeVariants() const override {
    return skinnyGemmVariants(shape.op->getParentOfType<func::FuncOp>(), machine);
  }
  void prepare(Translator &translator, const ScheduleConfig &config) override;
  void schedule(Translator &translator, const ScheduleConfig &config) override;

private:
  Func build(Translator &translator);
  Func interleaveRows(Translator &translator, Exprs loops);
  Func makeGroupSums(Translator &translator, Exprs loops);
  Exprs readInterleaved(const Exprs &loops) const;
  RowTile buildTile(Translator &translator, int height, const Exprs &loops);
  void scheduleTile(RowTile &tile);
  void scheduleK(Halide::Stage update, Halide::RVar k, Var part, int steps);
  void scheduleLoops(Func store, const ColumnLoops &columns);
  void scheduleStore(Func store, const Expr &columns);
  kiln_format_array_t itemsOfNumbers() const;

  Contraction shape;
  MachineModel machine;
  int lanes;
  RowRange range;
  int tileRows = 0, tileColumns = 0, rowPartialSums = 0, unroll = 0;
  int64_t taskColumns = 0, prefetch = 0;

  bool isFused = false;
  std::vector<RowTile> tiles;
  Func held, store; // store: undefined if fused
  Func words;       // the rows in words of the interleaved layout, if the weight has it
  Func groupSums;   // the sums of the groups of a row, if the weight has groups
  Func wideRows;    // undefined: the rows are read in place
  Exprs extents;    // extents of the output, innermost first
};

void SkinnyGemmStrategy::prepare(Translator &translator, const ScheduleConfig &config) {
  tileColumns = config.at("n");
  unroll = config.at("unroll");
  taskColumns = config.at("task");
  tileRows = range.most > 1 ? config.at("m") : 1;
  rowPartialSums = range.least <= 1 ? config.at("partial_sums") : 1;
  prefetch = config.at("prefetch");
  isFused = hasPointwiseUses(shape.op);
  translator.setBuilder(shape.op, [this, &translator](linalg::GenericOp) { return build(translator); });
}

RowTile SkinnyGemmStrategy::buildTile(Translator &translator, int height, const Exprs &outer) {
  linalg::GenericOp op = shape.op;
  RowTile tile;
  tile.height = height;
  tile.partialSums = height == 1 ? rowPartialSums : 1;
  std::string suffix = std::to_string(height);
  Var column = dimensionVar(0), inTile("in_tile"), number("number"), part("part");
  const int kExtent = int(staticSteps(shape));
  const int group = int(translator.groupOf(op, shape.b) / std::max<int64_t>(shape.interleave, 1)); // in K iterations
  tile.reduction = RDom({{0, group ? group : kExtent / tile.partialSums}}, translator.name("k" + suffix));
  // With groups, the last variable is the number of the group.
  Var last = group ? Var("group") : part;
  Exprs loops = outer;
  loops[shape.n] = column;
  loops[shape.reduction[0]] = group ? last * group + tile.reduction.x : tile.reduction.x * tile.partialSums + part;
  if (shape.m)
    loops[*shape.m] = Halide::min(number * height + inTile, translator.loopExtent(op, *shape.m) - 1);
  const Expr zero = Halide::Internal::make_zero(elementType(shape.sumType()));
  Func added(translator.name((group ? "group" : "tile") + suffix));
  added(column, inTile, number, last) = shape.isVnni() ? Expr(0) : zero;
  if (shape.isVnni()) {
    added(column, inTile, number, last) = translator.addProducts(
        shape, added(column, inTile, number, last), readInterleaved(loops), translator.interleavedWeight(shape, loops));
  } else {
    Exprs values = translator.body(op, loops, [&](unsigned operand) -> Expr {
      if (operand == shape.a && wideRows.defined())
        return wideRows(reversed(translator.operandIndices(op, operand, loops)));
      return operand == shape.a || operand == shape.b ? translator.readOperand(op, operand, loops)
                                                      : Expr(added(column, inTile, number, last));
    });
    if (values.empty())
      return tile;
    added(column, inTile, number, last) = overDomain(tile.reduction, values[0]);
  }
  tile.sums = added;
  if (!group)
    return tile;
  tile.group = added;
  tile.groups = RDom({{0, kExtent / group / tile.partialSums}}, translator.name("groups" + suffix));
  Expr which = tile.groups.x * tile.partialSums + part, sum = tile.group(column, inTile, number, which);
  loops[shape.reduction[0]] = which * int(translator.groupOf(op, shape.b));
  tile.sums = Func(translator.name("tile" + suffix));
  tile.sums(column, inTile, number, part) = zero;
  const Expr before = tile.sums(column, inTile, number, part);
  if (shape.group) {
    const Expr rowSum = shape.m ? Expr(groupSums(which, loops[*shape.m])) : Expr(groupSums(which));
    tile.sums(column, inTile, number, part) =
        Halide::strict_float(before + translator.scaledGroup(shape, sum, rowSum, loops));
  } else {
    const Expr scale = translator.scaleOf(op, shape.b, loops); // undefined: numbers are scaled as they are read
    tile.sums(column, inTile, number, part) = before + (scale.defined() ? sum * scale : sum);
  }
  return tile;
}

/// Returns the words of a row that are multiplied by the weight's word.
Exprs SkinnyGemmStrategy::readInterleaved(const Exprs &loops) const {
  const int count = int(rowInterleavesPerStep(shape));
  Exprs read;
  for (int i = 0; i < count; ++i) {
    const Expr word = loops[shape.reduction[0]] * count + i;
    read.push_back(shape.m ? Expr(words(word, loops[*shape.m])) : Expr(words(word)));
  }
  return read;
}

/// Packs the rows into words of the interleaved layout before the GEMM.
Func SkinnyGemmStrategy::interleaveRows(Translator &translator, Exprs loops) {
  const Var word = dimensionVar(0), row = dimensionVar(1);
  loops[shape.reduction[0]] = word;
  Func made(translator.name("words"));
  if (shape.m) {
    loops[*shape.m] = row;
    made(word, row) = translator.interleavedRow(shape, loops);
    made.bound(row, 0, translator.loopExtent(shape.op, *shape.m));
  } else {
    made(word) = translator.interleavedRow(shape, loops);
  }
  made.compute_root();
  vectorizeGuarded(made, word, Expr(int(staticSteps(shape) * rowInterleavesPerStep(shape))), lanes);
  return made;
}

/// Computes the sums of the groups of the rows before the GEMM.
Func SkinnyGemmStrategy::makeGroupSums(Translator &translator, Exprs loops) {
  const Var which = dimensionVar(0), row = dimensionVar(1);
  RDom within({{0, int(shape.group)}}, translator.name("within"));
  loops[shape.reduction[0]] = which * int(shape.group) + within.x;
  std::vector<Var> vars{which};
  if (shape.m) {
    loops[*shape.m] = row;
    vars.push_back(row);
  }
  Func made(translator.name("group_sums"));
  made(vars) = 0;
  made(vars) += Halide::cast<int32_t>(translator.readOperand(shape.op, shape.a, loops));
  if (shape.m)
    made.bound(row, 0, translator.loopExtent(shape.op, *shape.m));
  made.compute_root();
  made.update().atomic().vectorize(within.x, lanes);
  return made;
}

Func SkinnyGemmStrategy::build(Translator &translator) {
  linalg::GenericOp op = shape.op;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  unsigned rank = out.getNumResults();
  std::vector<Var> vars;
  Exprs loops(op.getNumLoops());
  for (unsigned i = 0; i < rank; ++i) {
    unsigned loop = out.getDimPosition(rank - 1 - i);
    vars.push_back(dimensionVar(i));
    extents.push_back(translator.loopExtent(op, loop));
  }
  translator.setUnscaled(op, shape.b);
  if (Value x = op->getOperand(shape.a);
      !shape.isVnni() && isa<BlockArgument>(x) && bytesOf(x, 1) < int64_t(sizeof(float))) {
    std::vector<Var> at;
    for (int64_t i = 0; i < cast<RankedTensorType>(x.getType()).getRank(); ++i)
      at.push_back(dimensionVar(i));
    wideRows = Func(translator.name("wide_rows"));
    wideRows(at) = translator.wide(x, translator.read(x, reversed(Exprs(at.begin(), at.end()))));
  }
  held = Func(translator.name("held"));
  held(vars) = Halide::undef(shape.hasIntegerSums() ? Halide::Int(32) : elementType(shape.sumType()));
  if (shape.isVnni())
    words = interleaveRows(translator, loops);
  if (shape.group)
    groupSums = makeGroupSums(translator, loops);

  // Tiles of one height, as few as registers allow.
  Expr rows = rank > 1 ? extents[1] : Expr(1);
  Expr count = (rows + (tileRows - 1)) / tileRows, height = (rows + count - 1) / count;
  for (int64_t t = range.least > 1 && tileRows > 1 ? 2 : 1; t <= tileRows; ++t) {
    RowTile tile = buildTile(translator, t, loops);
    if (!tile.sums.defined() || !tile.sums.has_update_definition())
      return Func();
    tile.rows = RDom({{0, int(t)}, {0, range.most > 1 ? count : Expr(1)}}, translator.name("rows" + std::to_string(t)));
    if (range.most > 1)
      tile.rows.where(height == int(t));
    Expr sum;
    for (int part = 0; part < tile.partialSums; ++part) {
      Expr value = tile.sums(vars[0], tile.rows.x, tile.rows.y, part);
      sum = sum.defined() ? sum + value : value;
    }
    if (rank > 1)
      held(vars[0], Halide::min(tile.rows.y * int(t) + tile.rows.x, rows - 1)) = sum;
    else
      held(vars[0]) = sum;
    tiles.push_back(std::move(tile));
  }
  Func result = held;
  loops[shape.n] = vars[0];
  const bool hasOneScale = translator.groupOf(op, shape.b) == 0;
  if (hasOneScale && translator.scaleOf(op, shape.b, loops).defined()) {
    result = Func(translator.name("scaled")); // inlined into its uses
    result(vars) = translator.scaledSum(shape, held(Exprs(vars.begin(), vars.end())), loops);
  }
  if (isFused)
    return result;
  store = Func(translator.name("sums"));
  store(vars) = result(Exprs(vars.begin(), vars.end()));
  return store;
}

void SkinnyGemmStrategy::scheduleTile(RowTile &tile) {
  Var column = dimensionVar(0), inTile("in_tile"), part("part");
  Func sums = tile.sums;
  sums.compute_at(held, tile.rows.y);
  sums.bound_extent(column, tileColumns).align_bounds(column, tileColumns).vectorize(column, lanes).unroll(column);
  sums.bound(part, 0, tile.partialSums).unroll(part).unroll(inTile);
  if (!tile.group.defined()) {
    scheduleK(sums.update(), tile.reduction.x, part, std::max(1, unroll / tile.partialSums));
    return;
  }
  scheduleK(sums.update(), tile.groups.x, part, 1);
  Func group = tile.group;
  Var number("group");
  group.compute_at(sums, tile.groups.x);
  group.bound_extent(column, tileColumns).align_bounds(column, tileColumns).vectorize(column, lanes).unroll(column);
  group.bound_extent(number, tile.partialSums).unroll(number).unroll(inTile);
  const int64_t steps = shape.isVnni() ? shape.group / shape.interleave : mlir::kiln::elementsOfWord;
  scheduleK(group.update(), tile.reduction.x, number, int(steps));
}

/// Schedules a loop over k or groups, unrolled `steps` times; each iteration updates all accumulators of the tile.
void SkinnyGemmStrategy::scheduleK(Halide::Stage update, Halide::RVar k, Var part, int steps) {
  Var column = dimensionVar(0), inTile("in_tile");
  Halide::RVar outer("outer"), inner("inner");
  if (steps > 1) {
    update.split(k, outer, inner, steps);
    update.reorder(column, inTile, part, inner, outer).unroll(inner);
  } else {
    update.reorder(column, inTile, part, k);
  }
  update.vectorize(column, lanes).unroll(column).unroll(inTile).unroll(part);
}

/// Schedules the loops over rows inside of panels of columns.
void SkinnyGemmStrategy::scheduleLoops(Func func, const ColumnLoops &columns) {
  auto [lane, vector, column] = columns;
  Var task("task");
  std::vector<Halide::VarOrRVar> order{lane, vector};
  for (unsigned i = 1; i < extents.size(); ++i)
    order.push_back(dimensionVar(i));
  order.push_back(column);
  func.reorder(order);
  if (taskColumns > 1)
    func.split(column, task, column, int(taskColumns), TailStrategy::GuardWithIf).parallel(task);
  else
    func.parallel(column);
}

void SkinnyGemmStrategy::scheduleStore(Func func, const Expr &columns) {
  const ColumnLoops loops = splitColumns(func, columns, tileColumns, lanes);
  scheduleLoops(func, loops);
  Var d0 = dimensionVar(0);
  held.compute_at(func, loops.column);
  held.bound_extent(d0, tileColumns).align_bounds(d0, tileColumns);
  if (extents.size() > 1)
    held.bound_extent(dimensionVar(1), int(range.most));
  for (auto [number, tile] : llvm::enumerate(tiles)) {
    held.update(number).reorder(d0, tile.rows.x, tile.rows.y);
    held.update(number).vectorize(d0, lanes).unroll(d0).unroll(tile.rows.x);
    scheduleTile(tile);
  }
}

/// Returns how many items of the weight's first array have how many numbers along K of a group.
kiln_format_array_t SkinnyGemmStrategy::itemsOfNumbers() const {
  auto type = cast<RankedTensorType>(linalg::GenericOp(shape.op)->getOperand(shape.b).getType());
  const mlir::kiln::StorageAttr storage = mlir::kiln::getStorage(type);
  if (!storage || !storage.isGrouped())
    return {0, 0, 1, 1};
  return mlir::kiln::getFormatArrays(cast<mlir::kiln::TiledAttr>(type.getEncoding()))[0];
}

void SkinnyGemmStrategy::schedule(Translator &translator, const ScheduleConfig &) {
  if (wideRows.defined()) {
    const Expr width = translator.extent(shape.op->getOperand(shape.a), wideRows.dimensions() - 1);
    wideRows.compute_root();
    vectorizeGuarded(wideRows, dimensionVar(0), width, lanes);
  }
  if (prefetch) {
    const kiln_format_array_t items = itemsOfNumbers();
    translator.prefetch(shape.op, shape.b, prefetch * shape.tile * items.per / items.each);
  }
  placeAtRoot(translator, {shape.op}, lanes);
  if (!isFused) {
    store.compute_root();
    for (unsigned i = 0; i < extents.size(); ++i)
      store.bound(dimensionVar(i), 0, extents[i]);
    padColumns(store, extents, tileColumns, lanes);
    scheduleStore(store, extents[0]);
  }
  for (const Output &output : translator.outputs) {
    if (isFused)
      scheduleStore(output.func, output.extents[0]);
    else
      halide::scheduleStore(output, lanes, Tasks());
  }
}

/// A smaller weight takes only a few cache lines, so reading it does not dominate.
constexpr int64_t leastWeightElements = 512;

/// Returns the kernel's contraction if it is the only one and a GEMM or GEMV without batch loops, with a static K and a
/// weight of some size in tiles of whole vectors.
std::optional<Contraction> asRowsTimesWeight(func::FuncOp kernel, const MachineModel &machine) {
  std::optional<Contraction> found = onlyContraction(kernel);
  if (!found || found->tile == 0 || found->tile % vectorLanes(machine, found->sumType()) || !found->outer.empty() ||
      ShapedType::isDynamic(staticK(*found)) ||
      staticExtent(found->op, found->n) * staticK(*found) < leastWeightElements)
    return std::nullopt;
  return found;
}

} // namespace

std::vector<ShapeVariant> skinnyGemmVariants(func::FuncOp kernel, const MachineModel &machine) {
  std::optional<Contraction> contraction = asRowsTimesWeight(kernel, machine);
  if (!contraction || !contraction->m)
    return {};
  std::optional<unsigned> symbol = symbolOfExtent(contraction->op, *contraction->m);
  if (!symbol)
    return {};
  int64_t least = smallestExtent(contraction->op, *contraction->m),
          most = largestExtent(contraction->op, *contraction->m);
  std::vector<ShapeVariant> variants;
  for (int64_t bound : {int64_t(1), mostSkinnyRows})
    if (least <= bound && bound < most)
      variants.push_back({*symbol, bound});
  return variants;
}

std::unique_ptr<Strategy> matchSkinnyGemm(func::FuncOp kernel, const MachineModel &machine) {
  std::optional<Contraction> contraction = asRowsTimesWeight(kernel, machine);
  if (!contraction || (contraction->m && largestExtent(contraction->op, *contraction->m) > mostSkinnyRows))
    return nullptr;
  return std::make_unique<SkinnyGemmStrategy>(*contraction, machine);
}

} // namespace kiln::halide
