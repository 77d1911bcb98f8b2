// SPDX-License-Identifier: Apache-2.0
//
// The strategy for 3 x 3 convolutions of stride 1 over many channels: Winograd's minimal filtering F(2 x 2, 3 x 3)
// (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", section 4.1),
//   Y = A^T [ sum over c of (G g G^T) * (B^T d B) ] A,
// needs 16 multiply-adds for four pixels where the direct convolution needs 36 (M-0501). Its factors are 1 and 1/2, and
// its error stays that of the sum over the window.
//
// 1. The padded image is copied a row of tiles at a time, and its tiles d of 4 x 4 pixels, which overlap by two, are
//    transformed. The weight is transformed in each call: that reads 9 numbers where a stored transform has 16.
// 2. Each of the 16 positions in a tile is a GEMM of [tiles, channels] and [channels, outputs], in register tiles.
// 3. Its sums stay in the cache for a panel of outputs, from where the four pixels of each tile are assembled.
#include "targets/halide/strategies/ImageContraction.h"
#include "targets/halide/strategies/Placement.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::TailStrategy;
using Halide::Var;

namespace {

struct Config {
  int tileRow, tileOutputs, rows; // tileRow: tiles of the image per register tile
  bool isSplitByRows;
};

class Winograd : public Strategy {
public:
  Winograd(const ImageContraction &match, const MachineModel &machine)
      : match(match), machine(machine), lanes(vectorLanes(machine, match.shape.sumType())),
        isFused(hasPointwiseUses(match.op())) {}

  llvm::StringRef name() const override { return "winograd"; }
  SearchSpace searchSpace() const override;
  double operationShare() const override { return 16.0 / 36.0; }
  void prepare(Translator &translator, const ScheduleConfig &given) override {
    auto get = [&](const char *key) { return int(given.at(key)); };
    config = {get("m"), get("n"), get("rows"), get("split") == 0};
    translator.setBuilder(match.op(), [this, &translator](linalg::GenericOp) { return build(translator); });
  }
  void schedule(Translator &translator, const ScheduleConfig &) override;

private:
  Func build(Translator &translator);
  void buildPatches();
  void buildFilter(Translator &translator, const Exprs &loops);
  bool buildTile(Translator &translator, Exprs loops);
  void scheduleStore(Func store);
  void scheduleSums();
  void schedulePatches();

  ImageContraction match;
  MachineModel machine;
  int lanes;
  bool isFused; // stored by the kernel's output, not by a separate Func
  Config config{};
  unsigned rank = 0;
  Exprs extents; // extents of the output, innermost first
  Func image, patches, filter, tile, sums;
  RDom channels;
  Func store; // undefined if fused
};

const Var d0 = dimensionVar(0), columns = dimensionVar(1), rows = dimensionVar(2);
const Var channel("channel"), panel("panel"), i("i"), j("j");

//===- Search space ------------------------------------------------------===//

SearchSpace Winograd::searchSpace() const {
  const linalg::GenericOp op = match.op();
  const int64_t registers = vectorRegisters(machine, match.shape.sumType()),
                width = (largestExtent(op, match.columns()) + 1) / 2,
                height = (largestExtent(op, match.rows()) + 1) / 2;
  std::vector<int64_t> outputs = tileOutputs(match, lanes), tiles;
  for (int64_t m = 1; m <= registers / 2; ++m)
    tiles.push_back(m);
  const auto [bestTiles, bestOutputs] = findTile(match, outputs, width, /*columns=*/1, machine);
  // Either a block of the image's rows or the weight stays in the cache while a panel of outputs passes. The smaller
  // one is transformed as a whole.
  int64_t images = 1;
  for (unsigned loop : llvm::drop_begin(match.shape.outer))
    images *= largestExtent(op, loop);
  const bool isWeightSmaller = images * width * height >= largestExtent(op, match.shape.n);
  const int64_t rowBytes =
      bytesOf(match.image(), 16 * width * match.channels()) + bytesOf(op->getResult(0), 16 * width * bestOutputs);
  SearchSpace space{makeParameter("m", tiles, bestTiles), makeParameter("n", outputs, bestOutputs),
                    makeParameter("rows", blocksOfRows(height), isWeightSmaller ? machine.l2Bytes / rowBytes : height),
                    makeParameter("split", {0, 1}, isWeightSmaller ? 0 : 1)};
  space.rules = {registersOfTile(lanes, registers)};
  return space;
}

//===- Funcs -------------------------------------------------------------===//

using Line = llvm::function_ref<Expr(int)>;

/// Return a row of B^T times a column d, of G times g, and of A^T times m.
Expr transformImage(const Expr &row, Line d) {
  return Halide::mux(row, {d(0) - d(2), d(1) + d(2), d(2) - d(1), d(1) - d(3)});
}
Expr transformWeight(const Expr &row, Line g) {
  return Halide::mux(row, {g(0), (g(0) + g(1) + g(2)) / 2, (g(0) - g(1) + g(2)) / 2, g(2)});
}
Expr transformSums(const Expr &row, Line m) { return Halide::mux(row, {m(0) + m(1) + m(2), m(1) - m(2) - m(3)}); }

/// Builds B^T d B, as [j, i, .., row, column, channel].
void Winograd::buildPatches() {
  std::vector<Var> vars{channel};
  for (unsigned d = 1; d < rank; ++d)
    vars.push_back(dimensionVar(d));
  Exprs at(vars.begin(), vars.end());
  at.push_back(0); // one block of channels
  Expr value = transformImage(i, [&](int p) {
    return transformImage(j, [&](int q) -> Expr {
      at[1] = 2 * columns + q;
      at[2] = 2 * rows + p;
      return image(at);
    });
  });
  vars.insert(vars.end(), {i, j});
  patches(vars) = value;
}

/// Builds G g G^T, as [panel, j, i, channel, output of the panel].
void Winograd::buildFilter(Translator &translator, const Exprs &loops) {
  const Contraction &shape = match.shape;
  Exprs at = loops;
  at[shape.n] = panel * config.tileOutputs + d0;
  at[shape.reduction[0]] = channel;
  filter(d0, channel, i, j, panel) = transformWeight(i, [&](int p) {
    return transformWeight(j, [&](int q) {
      at[shape.reduction[1]] = p;
      at[shape.reduction[2]] = q;
      return translator.readWide(match.op(), shape.b, at);
    });
  });
}

/// Builds the sum over the channels at each position of each tile, as [j, i, .., row, column, output].
bool Winograd::buildTile(Translator &translator, Exprs loops) {
  std::vector<Var> vars;
  for (unsigned d = 0; d < rank; ++d)
    vars.push_back(dimensionVar(d));
  Exprs patch(vars.begin(), vars.end());
  vars.insert(vars.end(), {i, j});
  Exprs at(vars.begin(), vars.end());
  channels = RDom(0, int(match.channels()), translator.name("k"));
  patch[0] = channels.x;
  patch.insert(patch.end(), {i, j});

  tile = Func(translator.name("tile"));
  tile(vars) = Halide::Internal::make_zero(elementType(match.shape.sumType()));
  Exprs values = translator.body(match.op(), loops, [&](unsigned number) -> Expr {
    if (number == match.shape.a)
      return patches(patch);
    if (number == match.shape.b)
      return filter(d0 % config.tileOutputs, channels.x, i, j, d0 / config.tileOutputs);
    return tile(at);
  });
  if (values.empty())
    return false;
  tile(at) = values[0];
  sums = Func(translator.name("sums"));
  sums(vars) = tile(vars);
  return true;
}

Func Winograd::build(Translator &translator) {
  linalg::GenericOp op = match.op();
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  rank = out.getNumResults();
  std::vector<Var> vars;
  Exprs loops(op.getNumLoops(), Expr(0));
  for (unsigned d = 0; d < rank; ++d) {
    unsigned loop = out.getDimPosition(rank - 1 - d);
    vars.push_back(dimensionVar(d));
    loops[loop] = vars.back();
    extents.push_back(translator.loopExtent(op, loop));
  }
  image = copyImage(translator, match, int(match.channels()), channel, Var("block"));
  patches = Func(translator.name("patches"));
  filter = Func(translator.name("filter"));
  buildPatches();
  buildFilter(translator, loops);
  if (!buildTile(translator, loops))
    return Func();
  Exprs at(vars.begin(), vars.end());
  at[1] = columns / 2;
  at[2] = rows / 2;
  Func result(translator.name("pixels"));
  result(vars) = transformSums(rows % 2, [&](int p) {
    return transformSums(columns % 2, [&](int q) -> Expr {
      Exprs place = at;
      place.insert(place.end(), {p, q});
      return sums(place);
    });
  });
  if (!isFused) {
    store = Func(translator.name("result"));
    store(vars) = result(vars);
    result = store;
  }
  return result;
}

//===- Schedule ----------------------------------------------------------===//

void Winograd::schedulePatches() {
  Var lane("lane");
  const int extent = int(match.channels());
  int width = lanes;
  while (extent % width)
    width /= 2;
  patches.bound_extent(channel, extent).bound(i, 0, 4).bound(j, 0, 4);
  patches.split(channel, channel, lane, width).vectorize(lane);
  std::vector<Halide::VarOrRVar> order{lane, i, j, channel, columns, rows};
  for (unsigned d = 3; d < rank; ++d)
    order.push_back(dimensionVar(d));
  patches.reorder(order).unroll(i).unroll(j);
  image.compute_at(patches, rows).bound_extent(channel, extent);
  vectorizeGuarded(image, channel, extent, lanes);
}

void Winograd::scheduleSums() {
  Var inTile("in_tile"), tileColumn("tile_column");
  sums.bound(i, 0, 4).bound(j, 0, 4).bound_extent(d0, config.tileOutputs).align_bounds(d0, config.tileOutputs);
  sums.align_bounds(columns, config.tileRow).split(columns, tileColumn, inTile, config.tileRow);
  std::vector<Halide::VarOrRVar> order{d0, inTile, tileColumn};
  for (unsigned d = 2; d < rank; ++d)
    order.push_back(dimensionVar(d));
  order.insert(order.end(), {i, j});
  sums.reorder(order).vectorize(d0, lanes).unroll(d0).unroll(inTile);

  tile.compute_at(sums, tileColumn);
  for (auto [var, size] : {std::pair(d0, config.tileOutputs), std::pair(columns, config.tileRow)})
    tile.bound_extent(var, size).align_bounds(var, size);
  tile.vectorize(d0, lanes).unroll(d0).unroll(columns);
  Halide::Stage update = tile.update();
  update.reorder(d0, columns, channels.x).vectorize(d0, lanes).unroll(d0).unroll(columns);
}

void Winograd::scheduleStore(Func into) {
  Var inColumn("in_column"), tileColumn("tile_column"), inRow("in_row");
  auto [lane, vector, column] = splitColumns(into, extents[0], config.tileOutputs, lanes);
  if (!isFused)
    padColumns(into, extents, config.tileOutputs, lanes);
  into.split(columns, tileColumn, inColumn, 2, TailStrategy::GuardWithIf).unroll(inColumn);
  into.split(rows, rows, inRow, 2, TailStrategy::GuardWithIf).unroll(inRow);
  into.split(rows, rowBlock, rows, config.rows, TailStrategy::GuardWithIf);
  std::vector<Halide::VarOrRVar> order{lane, inColumn, inRow, vector, tileColumn, rows};
  if (config.isSplitByRows)
    order.insert(order.end(), {column, rowBlock});
  else
    order.push_back(rowBlock);
  for (unsigned d = 3; d < rank; ++d)
    order.push_back(dimensionVar(d));
  if (!config.isSplitByRows)
    order.push_back(column);
  into.reorder(order);
  filter.bound(i, 0, 4).bound(j, 0, 4).bound_extent(d0, config.tileOutputs);
  filter.reorder(d0, i, j, channel, panel).vectorize(d0, lanes).unroll(i).unroll(j);
  if (config.isSplitByRows) {
    Var outer = rowBlock;
    for (unsigned d = 3; d < rank; ++d) {
      Var task("task" + std::to_string(d));
      into.fuse(outer, dimensionVar(d), task);
      outer = task;
    }
    into.parallel(outer);
    patches.compute_at(into, outer);
    schedulePatches();
    filter.compute_root().parallel(panel);
    sums.compute_at(into, column);
  } else {
    into.parallel(column);
    patches.compute_root();
    schedulePatches();
    patches.parallel(rows);
    filter.compute_at(into, column);
    sums.compute_at(into, rowBlock);
  }
  sums.store_in(Halide::MemoryType::Heap);
  scheduleSums();
}

void Winograd::schedule(Translator &translator, const ScheduleConfig &) {
  scheduleResults(translator, match, /*isCopied=*/true, store, extents, lanes, [&](Func func) { scheduleStore(func); });
}

/// Whether the image's dimension is indexed by `at` + `window`, with a window of three.
bool isWindowOfThree(const ImageContraction &match, unsigned dimension, unsigned at, unsigned window) {
  linalg::GenericOp op = match.op();
  AffineMap map = op.getIndexingMapsArray()[match.shape.a];
  MLIRContext *context = op->getContext();
  AffineExpr rest = map.getResult(dimension) - getAffineDimExpr(at, context) - getAffineDimExpr(window, context);
  return staticExtent(op, window) == 3 && simplifyAffineExpr(rest, map.getNumDims(), 0) == 0;
}

} // namespace

std::unique_ptr<Strategy> matchWinograd(func::FuncOp kernel, const MachineModel &machine) {
  std::optional<ImageContraction> found = findImageContraction(kernel, machine);
  if (!found || found->shape.reduction.size() != 3 || found->channelDim < 2)
    return nullptr;
  linalg::GenericOp op = found->op();
  llvm::ArrayRef<unsigned> reduction = found->shape.reduction;
  if (!found->shape.sumType().isF32() || !isWindowOfThree(*found, found->channelDim - 2, found->rows(), reduction[1]) ||
      !isWindowOfThree(*found, found->channelDim - 1, found->columns(), reduction[2]))
    return nullptr;
  // The transform of the image is amortised over the outputs, that of the weight over the tiles, and that of the sums
  // over the channels. The numbers from which on it pays off were not measured.
  constexpr int64_t fewestChannels = 32, fewestTiles = 32;
  int64_t tiles = ((smallestExtent(op, found->columns()) + 1) / 2) * ((smallestExtent(op, found->rows()) + 1) / 2);
  for (unsigned loop : llvm::drop_begin(found->shape.outer))
    tiles *= smallestExtent(op, loop);
  if (tiles < fewestTiles || found->channels() < fewestChannels || staticExtent(op, found->shape.n) < fewestChannels)
    return nullptr;
  return std::make_unique<Winograd>(*found, machine);
}

} // namespace kiln::halide
