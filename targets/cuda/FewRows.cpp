// SPDX-License-Identifier: Apache-2.0
//
// Where the weight has its columns side by side, FewRowsAcross.cpp does it. Else:
//
// 1. A warp for each few columns of a batch. Its lanes take neighbours of the depth, 16 bytes of the weight each where
//    extents allow, and those in one access where the address does, which is asked once at run time: sums are the same.
// 2. A lane adds what it takes in order of the depth; then lanes add theirs in a tree, always the same one.
// 3. Each lane finishes one of the sums. It has read all that it stores over before.
//
// While kernels before it still run, a block of either loads the first part of its weights, and brings the others to
// the second cache.
#include "targets/cuda/FewRows.h"

#include "compiler/dialect/Extents.h"
#include "compiler/schedule/SearchSpace.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "targets/cuda/Elements.h"
#include "targets/cuda/FewRowsAcross.h"
#include "targets/cuda/Prefetch.h"
#include "targets/cuda/TileShape.h"
#include "targets/cuda/WgmmaShape.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

int64_t fewRowsOf(const Contraction &contraction) {
  return std::max<int64_t>(1, largestExtent(contraction, contraction.rows));
}

namespace {

constexpr int64_t mostRows = 8, lanes = 32;

class FewRowsBuilder {
public:
  FewRowsBuilder(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
                 int64_t columns, int64_t warps, int64_t turns)
      : b(b), reader(reader), context(context), contraction(contraction), inputA(context, contraction, true),
        inputB(context, contraction, false), rows(fewRowsOf(contraction)), columns(columns), warps(warps),
        turns(turns) {}

  LogicalResult run();

private:
  void begin();
  SmallVector<Values> placesOf(const ContractionInput &input, int64_t count, Value first);
  Value isAligned();
  Value isAlignedAt(const ContractionInput &input);
  Values addAll(bool isAligned);
  Value isInside(Value depth);
  SmallVector<Values> readTurn(const ContractionInput &input, ArrayRef<Values> places, bool isAligned, Value start);
  SmallVector<SmallVector<Values>> readWeights(bool isAligned, Value start);
  Values addTurns(ArrayRef<SmallVector<Values>> weights, bool isAligned, Value start, Values sums);
  Values read(const ContractionInput &input, const Values &place, bool isAligned, Value depth);
  LogicalResult finish(const Values &sums);

  tile::Builder &b;
  Reader &reader;
  const StepContext &context;
  const Contraction &contraction;
  ContractionInput inputA, inputB;
  int64_t rows, columns, warps, turns;
  int64_t width = 1; // neighbours along the depth that a lane takes
  Value lane, firstColumn, rowCount, columnCount, depthCount;
  Values loops;                         // with the numbers of the batch
  SmallVector<Values> placesA, placesB; // the loops of each row and of each column
  bool broken = false;
};

/// The loops of `count` rows from the first one on; instead of those beyond the end the last one, whose sums nobody
/// stores.
SmallVector<Values> FewRowsBuilder::placesOf(const ContractionInput &input, int64_t count, Value first) {
  Value end = reader.extent(extentOf(contraction, input.rows));
  SmallVector<Values> places;
  for (int64_t i = 0; i < count; ++i) {
    places.push_back(loops);
    splitIndex(b, reader, contraction, input.rows, b.clamp(b.add(first, b.integer(i)), end), places.back());
  }
  return places;
}

void FewRowsBuilder::begin() {
  Value thread = b.threadId();
  lane = b.rem(thread, b.integer(lanes));
  rowCount = reader.extent(extentOf(contraction, contraction.rows));
  columnCount = reader.extent(extentOf(contraction, contraction.columns));
  depthCount = reader.extent(extentOf(contraction, contraction.depth));
  const int64_t ofBlock = warps * columns;
  Value across = b.div(b.add(columnCount, b.integer(ofBlock - 1)), b.integer(ofBlock));
  Value block = b.blockId();
  linalg::GenericOp op = contraction.op;
  loops.resize(op.getNumLoops());
  splitIndex(b, reader, contraction, contraction.batch, b.div(block, across), loops);
  Value warp = b.add(b.mul(b.rem(block, across), b.integer(warps)), b.div(thread, b.integer(lanes)));
  firstColumn = b.mul(warp, b.integer(columns));
  placesA = placesOf(inputA, rows, b.integer(0));
  placesB = placesOf(inputB, columns, firstColumn);
}

/// Neighbours along the depth that can be loaded at once.
static int64_t together(const ContractionInput &input) { return input.isAlongDepth ? input.together : 1; }

/// Null: it is, or there is nothing to be.
Value FewRowsBuilder::isAlignedAt(const ContractionInput &input) {
  if (together(input) == 1 || input.isSureAligned)
    return {};
  return tile::isMultiple(b, reader.address(contraction.op, input.number), together(input) * input.bytes());
}

Value FewRowsBuilder::isAligned() {
  Value a = isAlignedAt(inputA), c = isAlignedAt(inputB);
  return a && c ? b.both(a, c) : a ? a : c;
}

/// Neighbours along the depth, in f32.
Values FewRowsBuilder::read(const ContractionInput &input, const Values &place, bool isAligned, Value depth) {
  Values at = place, values;
  const int64_t count = isAligned ? std::min(width, together(input)) : 1;
  for (int64_t i = 0; i < width; i += count) {
    splitIndex(b, reader, contraction, contraction.depth, b.add(depth, b.integer(i)), at);
    if (count == 1) {
      values.push_back(readInput(b, reader, contraction, input.number, at));
      broken |= !values.back();
      continue;
    }
    Type element = deviceType(b, input.element);
    Value address = reader.address(contraction.op, input.number);
    Value from = b.addressOf(element, address, reader.offset(contraction.op, input.number, at));
    llvm::append_range(values, tile::loadFloats(b, element, count, from));
  }
  return values;
}

Value FewRowsBuilder::isInside(Value depth) {
  auto extent = dyn_cast<AffineConstantExpr>(extentOf(contraction, contraction.depth));
  const bool isWhole = extent && extent.getValue() % (lanes * width * turns) == 0;
  return isWhole ? b.integer(b.getI1Type(), 1) : b.isBelow(depth, depthCount);
}

/// What a lane takes of each place in the turn that begins at `start`; beyond the end of the depth zeros.
SmallVector<Values> FewRowsBuilder::readTurn(const ContractionInput &input, ArrayRef<Values> places, bool isAligned,
                                             Value start) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Value depth = b.add(start, b.mul(lane, b.integer(width))), inside = isInside(depth);
  SmallVector<Values> all;
  for (const Values &place : places) {
    all.push_back(read(input, place, isAligned, b.select(inside, depth, b.integer(0))));
    for (Value &value : all.back())
      value = broken ? value : b.select(inside, value, zero);
  }
  return all;
}

SmallVector<SmallVector<Values>> FewRowsBuilder::readWeights(bool isAligned, Value start) {
  SmallVector<SmallVector<Values>> all;
  for (int64_t turn = 0; turn < turns; ++turn)
    all.push_back(readTurn(inputB, placesB, isAligned, b.add(start, b.integer(turn * lanes * width))));
  return all;
}

Values FewRowsBuilder::addTurns(ArrayRef<SmallVector<Values>> weights, bool isAligned, Value start, Values sums) {
  for (int64_t turn = 0; turn < turns && !broken; ++turn) {
    SmallVector<Values> a = readTurn(inputA, placesA, isAligned, b.add(start, b.integer(turn * lanes * width)));
    for (int64_t k = 0; k < width && !broken; ++k)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          Value &sum = sums[row * columns + column];
          sum = math::FmaOp::create(b, a[row][k], weights[turn][column][k], sum);
        }
  }
  return sums;
}

/// Weights of the first turns come before the wait for other kernels, if there are any.
Values FewRowsBuilder::addAll(bool isAligned) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  const int64_t ofStep = lanes * width * turns, early = isEarly(context, contraction, inputB) ? 1 : 0;
  Values sums(rows * columns, zero);
  SmallVector<SmallVector<Values>> first;
  if (early)
    first = readWeights(isAligned, b.integer(0));
  b.awaitKernels();
  if (early)
    sums = addTurns(first, isAligned, b.integer(0), std::move(sums));
  return b.loop(stepsBehind(b, depthCount, ofStep, early), sums, [&](Value step, ValueRange values) {
    Value start = b.mul(b.add(step, b.integer(early)), b.integer(ofStep));
    return addTurns(readWeights(isAligned, start), isAligned, start, Values(values));
  });
}

/// Lane i finishes sum i.
LogicalResult FewRowsBuilder::finish(const Values &sums) {
  b.letNextBegin();
  Value mine = sums.front();
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value total = sum;
    for (int32_t bits = lanes / 2; bits > 0; bits /= 2)
      total = b.createOrFold<arith::AddFOp>(total, b.shuffleXor(total, bits));
    Value isMine = b.compare(arith::CmpIPredicate::eq, lane, b.integer(int64_t(i)));
    mine = i == 0 ? total : b.select(isMine, total, mine);
  }
  Value row = b.div(lane, b.integer(columns)), column = b.add(firstColumn, b.rem(lane, b.integer(columns)));
  Value inside = b.both(b.isBelow(row, rowCount), b.isBelow(column, columnCount));
  LogicalResult result = success();
  b.ifThen(inside, [&] {
    Values at = loops;
    splitIndex(b, reader, contraction, contraction.rows, row, at);
    splitIndex(b, reader, contraction, contraction.columns, column, at);
    Values results = finishSum(reader, context, contraction, at, mine);
    result = success(!results.empty());
    if (succeeded(result))
      storeResults(reader, context, contraction, at, results);
  });
  return result;
}

LogicalResult FewRowsBuilder::run() {
  begin();
  width = together(inputB);
  prefetchWeight(b, reader, contraction, inputB, warps * columns, warps * lanes, lanes * width * turns);
  prefetchEpilogue(b, reader, context, contraction, warps * columns);
  Value aligned = width > 1 ? isAligned() : Value();
  Values sums;
  if (aligned) {
    SmallVector<Type> ofSums(rows * columns, b.getF32Type());
    sums = b.ifElse(aligned, ofSums, [&] { return addAll(true); }, [&] { return addAll(false); });
  } else {
    sums = addAll(true);
  }
  return broken ? failure() : finish(sums);
}

/// Of one row as many as its depth has, so that memory is waited for once, or a part of them that leaves no rest.
int64_t presetTurns(const Contraction &contraction, const ContractionInput &weight, int64_t columns) {
  constexpr int64_t mostLoads = 12, usual = 8;
  if (fewRowsOf(contraction) > 1)
    return 1;
  const auto all = int64_t(llvm::divideCeil(largestExtent(contraction, contraction.depth), lanes * together(weight)));
  const int64_t most = mostLoads / columns;
  for (int64_t turns = most; 3 * turns >= most; --turns)
    if (all % turns == 0)
      return turns;
  return std::min({all, usual, most});
}

class FewRows : public StepStrategy {
public:
  FewRows(const StepContext &context, Contraction contraction)
      : context(context), contraction(std::move(contraction)) {}

  StringRef name() const override { return "few_rows"; }

  /// Two columns share what is read of the rows, four what is computed of them; more of them leave GPUs without warps.
  SearchSpace searchSpace() const override {
    const ContractionInput input = weight();
    if (!input.isAlongDepth)
      return fewRowsAcrossSpace(contraction, input);
    SearchSpace space;
    const bool isComputed = !ContractionInput(context, contraction, true).isPlain;
    const int64_t columns = isComputed ? 4 : fewRowsOf(contraction) == 1 ? 1 : 2;
    space.push_back({"columns", {1, 2, 4}, columns});
    space.push_back(
        makeParameter("turns", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, presetTurns(contraction, input, columns)));
    space.push_back({"warps", {2, 4, 8}, 4});
    return space;
  }

  /// Sums, the weights of all turns and the rows of one are in registers, besides addresses.
  std::optional<BlockNeeds> needs(const SchedulePoint &point) const override {
    const int64_t rows = fewRowsOf(contraction), threads = point.at("warps") * lanes;
    if (const ContractionInput input = weight(); !input.isAlongDepth)
      return fewRowsAcrossNeeds(contraction, input, point);
    const int64_t columns = point.at("columns");
    return BlockNeeds{threads, 32 + rows * columns + 4 * (rows + columns * point.at("turns")), 0, 0};
  }

  LogicalResult build(tile::Builder &b, const SchedulePoint &point, DevicePlan &plan) const override {
    if (const ContractionInput input = weight(); !input.isAlongDepth)
      return buildFewRowsAcross(b, context, contraction, input, point, plan);
    const int64_t columns = point.at("columns"), warps = point.at("warps");
    const std::string name = "step_" + std::to_string(plan.functions.size());
    const tile::KernelLaunch launch{.threads = warps * lanes, .waitsAtOnce = false};
    b.beginKernel(name, launch);
    Reader reader(b, context.placement, context.kernel);
    FewRowsBuilder builder(b, reader, context, contraction, columns, warps, point.at("turns"));
    if (failed(builder.run()))
      return failure();
    b.endKernel();
    AffineExpr blocks =
        extentOf(contraction, contraction.batch) * extentOf(contraction, contraction.columns).ceilDiv(warps * columns);
    plan.launches.push_back({unsigned(plan.functions.size()), blocks, reader.parameters});
    plan.functions.push_back(makeFunction(name, launch));
    return success();
  }

private:
  ContractionInput weight() const { return ContractionInput(context, contraction, false); }

  StepContext context;
  Contraction contraction;
};

} // namespace

std::unique_ptr<StepStrategy> matchFewRows(const StepContext &context) {
  std::optional<Contraction> contraction = findContraction(context);
  if (!contraction || largestExtent(*contraction, contraction->rows) > mostRows)
    return nullptr;
  return std::make_unique<FewRows>(context, std::move(*contraction));
}

std::vector<RowVariant> fewRowsVariants(func::FuncOp kernel, const Placement &placement) {
  std::vector<RowVariant> variants;
  for (const Step &step : placement.steps) {
    std::optional<Contraction> contraction = findContraction({kernel, placement, step});
    if (!contraction || contraction->rows.size() != 1 || !contraction->batch.empty())
      continue;
    AffineExpr extent = extentOf(*contraction, contraction->rows);
    auto symbol = dyn_cast<AffineSymbolExpr>(extent);
    SmallVector<int64_t> bounds{1};
    if (isLarge(*contraction)) // as many products for each row that there is not
      bounds.push_back(mostRows / 2);
    bounds.push_back(mostRows);
    const StepContext ofStep{kernel, placement, step};
    llvm::append_range(bounds,
                       hasWgmma(ofStep, *contraction) ? wgmmaBounds(ofStep, *contraction) : tileBounds(*contraction));
    for (int64_t bound : bounds)
      if (symbol && leastValue(extent, kernel) <= bound && bound < largestValue(extent, kernel))
        variants.push_back({symbol.getPosition(), bound});
    break;
  }
  return variants;
}

} // namespace kiln::cuda
