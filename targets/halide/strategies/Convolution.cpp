// SPDX-License-Identifier: Apache-2.0
//
// The strategy for convolutions with a packed weight and a fused elementwise epilogue.
//
// 1. A register tile is some pixels of a row by some outputs, so that its pixels are a constant distance apart in
//    memory.
// 2. Channels are summed up in blocks. The padded image is copied, a block of rows at a time, so that the channels of a
//    block are contiguous: they stay in the cache while a panel of outputs passes over all pixels. No im2col matrix is
//    stored.
// 3. The sums of a panel are kept in memory between the blocks of channels.
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

/// Constants of the default schedule configuration, not measured. More than `mostOfOneBlock` channels are split into
/// blocks of `blockChannels`.
constexpr int64_t blockChannels = 64, mostOfOneBlock = 96;
/// One in so many bytes of the L2 cache is for the sums of a panel and a block of the image's channels.
constexpr int64_t blockShare = 2;

struct Config {
  int tilePixels, tileOutputs, channels, rows;
  bool isPacked, isSplitByRows;
};

class Convolution : public Strategy {
public:
  Convolution(const ImageContraction &match, const MachineModel &machine)
      : match(match), shape(match.shape), machine(machine), lanes(vectorLanes(machine, shape.sumType())),
        isFused(hasPointwiseUses(shape.op)) {}

  llvm::StringRef name() const override { return "convolution"; }
  SearchSpace searchSpace() const override;
  void prepare(Translator &translator, const ScheduleConfig &given) override {
    auto get = [&](const char *key) { return int(given.at(key)); };
    config = {get("m"), get("n"), get("channels"), get("rows"), get("pack") != 0, get("split") == 0};
    translator.setBuilder(shape.op, [this, &translator](linalg::GenericOp) { return build(translator); });
  }
  void schedule(Translator &translator, const ScheduleConfig &) override;

private:
  Func build(Translator &translator);
  Exprs buildLoops(Translator &translator);
  bool buildTile(Translator &translator, Exprs loops, const std::vector<Var> &vars);
  void scheduleStore(Func store);
  void scheduleTile(Func store, Var column);

  int64_t channels() const { return match.channels(); }
  bool isInBlocks() const { return config.channels < channels(); }
  bool isArgument() const { return isa<BlockArgument>(op()->getOperand(shape.a)); }
  linalg::GenericOp op() const { return shape.op; }

  ImageContraction match;
  Contraction shape;
  MachineModel machine;
  int lanes;
  bool isFused; // stored by the kernel's output, not by a separate Func
  Config config{};
  unsigned rank = 0;
  Exprs extents;    // extents of the output, innermost first
  Func image;       // undefined: read in place
  Func tile, panel; // no panel without blocks of channels
  RDom window, blocks;
  Func store; // undefined if fused
};

const Var d0 = dimensionVar(0), pixels = dimensionVar(1), rows = dimensionVar(2);
const Var within("within"), block("block");

//===- Search space ------------------------------------------------------===//

SearchSpace Convolution::searchSpace() const {
  const int64_t registers = vectorRegisters(machine, shape.sumType()), width = largestExtent(op(), *shape.m),
                height = largestExtent(op(), shape.outer.front());
  std::vector<int64_t> outputs = tileOutputs(match, lanes), tiles;
  for (int64_t m = 1; m <= registers / 2; ++m)
    tiles.push_back(m);
  const auto [bestPixels, bestOutputs] = findTile(match, outputs, width, sharedColumns(match), machine);
  TuningParameter n = makeParameter("n", outputs, bestOutputs);
  TuningParameter inBlock =
      makeParameter("channels", channelBlocks(match, lanes), channels() <= mostOfOneBlock ? channels() : blockChannels);
  if (isBatchInvariant(op()))
    inBlock.values = {inBlock.defaultValue};
  int64_t rowBytes =
      bytesOf(op()->getResult(0), width * n.defaultValue) + bytesOf(match.image(), 2 * width * inBlock.defaultValue);
  SearchSpace space{makeParameter("m", tiles, bestPixels), n, inBlock,
                    makeParameter("rows", blocksOfRows(height), machine.l2Bytes / blockShare / rowBytes)};
  // Without a packed copy the image is read in place: windows that do not overlap read each pixel once.
  std::vector<int64_t> packs{1};
  if (isArgument())
    packs.insert(packs.begin(), 0);
  space.push_back(makeParameter("pack", packs, 1));
  space.push_back(makeParameter("split", {0, 1}, height <= 2 * space[3].defaultValue ? 1 : 0));
  space.rules = {registersOfTile(lanes, registers)};
  return space;
}

//===- Funcs -------------------------------------------------------------===//

/// Returns the values of the op's loops: the output's dimensions, and a reduction domain over the window and the
/// channels of a block.
Exprs Convolution::buildLoops(Translator &translator) {
  AffineMap out = op().getMatchingIndexingMap(op().getDpsInitOperand(0));
  rank = out.getNumResults();
  Exprs loops(op().getNumLoops());
  for (unsigned i = 0; i < rank; ++i) {
    unsigned loop = out.getDimPosition(rank - 1 - i);
    loops[loop] = dimensionVar(i);
    extents.push_back(translator.loopExtent(op(), loop));
  }
  Halide::Region region;
  for (unsigned reduction : llvm::reverse(shape.reduction))
    region.push_back(
        {0, reduction == shape.reduction[0] ? Expr(config.channels) : translator.loopExtent(op(), reduction)});
  window = RDom(region, translator.name("k"));
  for (unsigned i = 0; i < shape.reduction.size(); ++i)
    loops[shape.reduction[shape.reduction.size() - 1 - i]] = window[i];
  return loops;
}

/// Builds the sums of a block of channels. `vars` are the dimensions of the output and the block. Returns false after a
/// diagnostic.
bool Convolution::buildTile(Translator &translator, Exprs loops, const std::vector<Var> &vars) {
  const Expr channel = loops[shape.reduction[0]], first = isInBlocks() ? Expr(block) : Expr(0);
  if (isInBlocks())
    loops[shape.reduction[0]] = block * config.channels + channel;
  if (config.isPacked)
    image = copyImage(translator, match, config.channels, within, block);
  tile = Func(translator.name("tile"));
  tile(vars) = Halide::Internal::make_zero(elementType(shape.sumType()));
  Exprs at(vars.begin(), vars.end());
  Exprs values = translator.body(op(), loops, [&](unsigned number) -> Expr {
    if (number != shape.a)
      return number == shape.b ? translator.readOperand(op(), number, loops) : Expr(tile(at));
    Exprs here = loops;
    if (!config.isPacked) {
      here[*shape.m] = rowOfFullTile(here[*shape.m], translator.loopExtent(op(), *shape.m), config.tilePixels);
      return translator.readOperand(op(), number, here);
    }
    Exprs indices = translator.operandIndices(op(), number, here);
    indices.erase(indices.begin() + match.channelDim);
    indices.push_back(channel);
    std::reverse(indices.begin(), indices.end());
    indices.push_back(first);
    return image(indices);
  });
  if (values.empty())
    return false;
  tile(at) = overDomain(window, values[0]);
  return true;
}

Func Convolution::build(Translator &translator) {
  const Exprs loops = buildLoops(translator);
  std::vector<Var> vars;
  for (unsigned i = 0; i < rank; ++i)
    vars.push_back(dimensionVar(i));
  std::vector<Var> tileVars = vars;
  if (isInBlocks())
    tileVars.push_back(block);
  if (!buildTile(translator, loops, tileVars))
    return Func();

  Func result = tile;
  if (isInBlocks()) {
    blocks = RDom({{0, int(channels() / config.channels)}}, translator.name("blocks"));
    panel = Func(translator.name("panel"));
    panel(vars) = Halide::Internal::make_zero(typesOf(tile).front());
    Exprs at(vars.begin(), vars.end());
    at.push_back(blocks.x);
    panel(vars) += tile(at);
    result = panel;
  }
  if (!isFused) {
    store = Func(translator.name("sums"));
    store(vars) = result(vars);
    result = store;
  }
  return result;
}

//===- Schedule ----------------------------------------------------------===//

void Convolution::scheduleTile(Func into, Var column) {
  Var tilePixel("tile_pixel"), inTile("in_tile");
  if (panel.defined()) {
    panel.compute_at(into, column).store_in(Halide::MemoryType::Heap);
    panel.bound_extent(d0, config.tileOutputs).align_bounds(d0, config.tileOutputs).vectorize(d0, lanes).unroll(d0);
    panel.align_bounds(pixels, config.tilePixels);
    Halide::Stage update = panel.update();
    update.split(pixels, tilePixel, inTile, config.tilePixels, TailStrategy::RoundUp);
    std::vector<Halide::VarOrRVar> order{d0, inTile, tilePixel};
    for (unsigned i = 2; i < rank; ++i)
      order.push_back(dimensionVar(i));
    order.push_back(blocks.x);
    update.reorder(order).vectorize(d0, lanes).unroll(d0).unroll(inTile);
    tile.compute_at(panel, tilePixel);
  } else {
    tile.compute_at(into, Var("tile_pixel"));
  }
  for (auto [var, size] : {std::pair(d0, config.tileOutputs), std::pair(pixels, config.tilePixels)})
    tile.bound_extent(var, size).align_bounds(var, size);
  tile.vectorize(d0, lanes).unroll(d0).unroll(pixels);
  Halide::Stage update = tile.update();
  std::vector<Halide::VarOrRVar> order{d0, pixels};
  for (int i = 0; i < window.dimensions(); ++i)
    order.push_back(window[i]);
  update.reorder(order).vectorize(d0, lanes).unroll(d0).unroll(pixels);
}

void Convolution::scheduleStore(Func into) {
  Var inTile("in_tile"), tilePixel("tile_pixel");
  auto [lane, vector, column] = splitColumns(into, extents[0], config.tileOutputs, lanes);
  if (!isFused)
    padColumns(into, extents, config.tileOutputs, lanes);
  std::vector<Halide::VarOrRVar> order{lane, vector};
  if (panel.defined()) {
    order.push_back(pixels);
  } else {
    into.split(pixels, tilePixel, inTile, config.tilePixels, TailStrategy::GuardWithIf).unroll(inTile);
    order.push_back(inTile);
    order.push_back(tilePixel);
  }
  into.split(rows, rowBlock, rows, config.rows, TailStrategy::GuardWithIf);
  order.push_back(rows);
  order.push_back(column);
  order.push_back(rowBlock);
  for (unsigned i = 3; i < rank; ++i)
    order.push_back(dimensionVar(i));
  into.reorder(order);
  Var outer = rowBlock;
  if (config.isSplitByRows) {
    for (unsigned i = 3; i < rank; ++i) {
      Var task("task" + std::to_string(i));
      into.fuse(outer, dimensionVar(i), task);
      outer = task;
    }
    into.parallel(outer);
  } else {
    into.parallel(column);
  }
  if (image.defined()) {
    image.compute_at(into, outer);
    vectorizeGuarded(image, within, config.channels, lanes);
    if (!config.isSplitByRows)
      image.parallel(rows);
  }
  scheduleTile(into, column);
}

void Convolution::schedule(Translator &translator, const ScheduleConfig &) {
  scheduleResults(translator, match, config.isPacked, store, extents, lanes, [&](Func func) { scheduleStore(func); });
}

} // namespace

std::unique_ptr<Strategy> matchConvolution(func::FuncOp kernel, const MachineModel &machine) {
  std::optional<ImageContraction> found = findImageContraction(kernel, machine);
  return found ? std::make_unique<Convolution>(*found, machine) : nullptr;
}

} // namespace kiln::halide
