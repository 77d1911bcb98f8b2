// SPDX-License-Identifier: Apache-2.0
//
// 1. A block for each tile of bm x bn sums. Blocks with neighbouring numbers share inputs: they go through eight tiles
//    of rows before the next tile of columns.
// 2. Stages of shared memory hold bk of the depth. While one is added, those behind it are on their way.
// 3. The sums go to shared memory, from where each thread takes one of a row in turn, so that neighbours store
//    neighbours. It has read all that it stores over, as one that does an element from the start.
#include "targets/cuda/Contraction.h"

#include "compiler/dialect/Extents.h"
#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/TileProduct.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr int64_t rasterRows = 8;        // tiles of rows that blocks go through first
constexpr int64_t mostShared = 99 << 10; // bytes of a block's shared memory that each GPU since 8.0 has
constexpr int64_t multiprocessors = 108; // of the first GPU of 8.0: at least so many blocks are wanted
constexpr int64_t epilogueElements = 4;  // that a thread finishes at a time: one waits for memory with the others

//===- Search space ------------------------------------------------------===//

TileShape shapeOf(const SchedulePoint &point) {
  return {point.at("bm"), point.at("bn"), point.at("bk"), point.at("tm"), point.at("tn"), point.at("stages")};
}

/// With both inputs' depths side by side, which is the most.
int64_t sharedBytes(const TileShape &s) {
  const int64_t stages = s.stages * (s.bm + s.bn) * (s.bk + 4), sums = s.bm * (s.bn + 8);
  return 4 * std::max(stages, sums);
}

/// Of a thread: sums, what is loaded for four steps, what is on its way from memory, and addresses.
int64_t registers(const TileShape &s) {
  return s.tm * s.tn + 4 * (s.tm + s.tn) + (s.bm + s.bn) * s.bk / s.threads() + 40;
}

std::vector<TuningRule> tileRules() {
  return {
      {"64 to 512 threads: bm * bn / (tm * tn)",
       [](const SchedulePoint &p) { return shapeOf(p).threads() >= 64 && shapeOf(p).threads() <= 512; }},
      {"99 KiB of shared memory at most for stages of (bm + bn) * (bk + 4) and for sums of bm * (bn + 8)",
       [](const SchedulePoint &p) { return sharedBytes(shapeOf(p)) <= mostShared; }},
      {"255 registers at most: tm * tn + 4 * (tm + tn) + (bm + bn) * bk / threads + 40",
       [](const SchedulePoint &p) { return registers(shapeOf(p)) <= 255; }},
  };
}

SearchSpace tileSpace(const Contraction &c) {
  const int64_t rows = largestExtent(c, c.rows), columns = largestExtent(c, c.columns);
  auto tileOf = [](int64_t extent) { return extent <= 32 ? 32 : extent <= 64 ? 64 : 128; };
  int64_t bm = tileOf(rows), bn = tileOf(columns);
  auto blocks = [&] { return largestExtent(c, c.batch) * llvm::divideCeil(rows, bm) * llvm::divideCeil(columns, bn); };
  while (blocks() < multiprocessors && std::max(bm, bn) > 32)
    (bm >= bn ? bm : bn) /= 2;
  const bool isLarge = bm * bn >= 128 * 64;
  SearchSpace space;
  space.push_back(makeParameter("bm", {32, 64, 128}, bm));
  space.push_back(makeParameter("bn", {32, 64, 128}, bn));
  space.push_back(makeParameter("bk", {8, 16, 32}, largestExtent(c, c.depth) <= 8 ? 8 : 16));
  space.push_back(makeParameter("tm", {4, 8}, isLarge ? 8 : 4));
  space.push_back(makeParameter("tn", {4, 8}, isLarge ? 8 : 4));
  space.push_back(makeParameter("stages", {2, 3, 4}, 3));
  space.rules = tileRules();
  return space;
}

//===- Code --------------------------------------------------------------===//

class TileBuilder {
public:
  TileBuilder(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
              const TileShape &shape)
      : b(b), reader(reader), context(context), contraction(contraction), shape(shape),
        inputA(b, reader, context, contraction, true, shape), inputB(b, reader, context, contraction, false, shape),
        product(b, shape, inputA, inputB) {}

  LogicalResult run();
  int64_t sharedFloats() const { return std::max(shape.stages * stageSize(), shape.bm * product.pitch()); }

private:
  void begin();
  int64_t stageSize() const { return inputA.size() + inputB.size(); }
  Value stageOf(Value number) { return tile::advance(b, shared, b.mul(number, b.integer(stageSize()))); }
  Value behind(Value stage) { return tile::advance(b, stage, inputA.size()); }
  Values addAll();
  LogicalResult finish();

  tile::Builder &b;
  Reader &reader;
  const StepContext &context;
  const Contraction &contraction;
  TileShape shape;
  InputTile inputA, inputB;
  TileProduct product;
  Value thread, shared, firstRow, firstColumn, rowCount, columnCount;
  Values loops; // with the numbers of the batch
};

/// The block's number as that of the batch and of its tile.
void TileBuilder::begin() {
  thread = b.threadId();
  shared = tile::sharedMemory(b);
  rowCount = reader.extent(extentOf(contraction, contraction.rows));
  columnCount = reader.extent(extentOf(contraction, contraction.columns));
  auto tiles = [&](Value count, int64_t size) { return b.div(b.add(count, b.integer(size - 1)), b.integer(size)); };
  Value down = tiles(rowCount, shape.bm), across = tiles(columnCount, shape.bn);
  Value block = b.blockId(), ofBatch = b.mul(down, across);
  linalg::GenericOp op = contraction.op;
  loops.resize(op.getNumLoops());
  splitIndex(b, reader, contraction, contraction.batch, b.div(block, ofBatch), loops);
  Value tile = b.rem(block, ofBatch), ofGroup = b.mul(across, b.integer(rasterRows));
  Value first = b.mul(b.div(tile, ofGroup), b.integer(rasterRows)), inGroup = b.rem(tile, ofGroup);
  Value height = b.createOrFold<arith::MinSIOp>(b.sub(down, first), b.integer(rasterRows));
  firstRow = b.mul(b.add(first, b.rem(inGroup, height)), b.integer(shape.bm));
  firstColumn = b.mul(b.div(inGroup, height), b.integer(shape.bn));
  inputA.begin(thread, firstRow, loops);
  inputB.begin(thread, firstColumn, loops);
  product.begin(thread);
}

/// A stage is written again in the step behind the one that reads it, past its barrier.
Values TileBuilder::addAll() {
  const bool isAsync = inputA.isAsync() || inputB.isAsync();
  auto fetch = [&](Value start, Value stage) {
    Values a = inputA.fetch(start, stage), c = inputB.fetch(start, behind(stage));
    if (isAsync)
      tile::commitCopies(b);
    return std::pair(a, c);
  };
  auto put = [&](const std::pair<Values, Values> &fetched, Value stage) {
    inputA.put(fetched.first, stage);
    inputB.put(fetched.second, behind(stage));
  };
  const int64_t ahead = shape.stages - 1;
  for (int64_t i = 0; i < ahead; ++i) {
    Value stage = tile::advance(b, shared, i * stageSize());
    put(fetch(b.integer(i * shape.bk), stage), stage);
  }
  Value depth = reader.extent(extentOf(contraction, contraction.depth));
  Value steps = b.div(b.add(depth, b.integer(shape.bk - 1)), b.integer(shape.bk));
  Values carried = product.zeros();
  carried.append({b.integer(0), b.integer(ahead)}); // the stage to read and the one to write
  Values sums = b.loop(steps, carried, [&](Value step, ValueRange values) {
    if (isAsync)
      tile::awaitCopies(b, ahead - 1);
    tile::barrier(b);
    Value reading = values[values.size() - 2], writing = values.back();
    Value from = stageOf(reading), to = stageOf(writing);
    auto fetched = fetch(b.mul(b.add(step, b.integer(ahead)), b.integer(shape.bk)), to);
    Values next = product.add(from, behind(from), values.drop_back(2));
    put(fetched, to);
    Value following = b.add(reading, b.integer(1));
    Value isLast = b.compare(arith::CmpIPredicate::eq, following, b.integer(shape.stages));
    next.append({b.select(isLast, b.integer(0), following), reading});
    return next;
  });
  if (isAsync)
    tile::awaitCopies(b, 0);
  sums.truncate(sums.size() - 2);
  return sums;
}

LogicalResult TileBuilder::finish() {
  const int64_t ofTurn = shape.threads() * epilogueElements;
  LogicalResult result = success();
  b.loop(b.integer(shape.bm * shape.bn / ofTurn), {}, [&](Value turn, ValueRange) {
    Value first = b.add(b.mul(turn, b.integer(ofTurn)), thread);
    Values inside;
    SmallVector<Values> at, results;
    for (int64_t i = 0; i < epilogueElements && succeeded(result); ++i) {
      Value element = b.add(first, b.integer(i * shape.threads()));
      Value row = b.div(element, b.integer(shape.bn)), column = b.rem(element, b.integer(shape.bn));
      Value place = b.add(b.mul(row, b.integer(product.pitch())), column);
      Value sum = tile::loadOne(b, tile::advance(b, shared, place));
      row = b.add(firstRow, row), column = b.add(firstColumn, column);
      inside.push_back(b.both(b.isBelow(row, rowCount), b.isBelow(column, columnCount)));
      at.push_back(loops);
      splitIndex(b, reader, contraction, contraction.rows, b.clamp(row, rowCount), at.back());
      splitIndex(b, reader, contraction, contraction.columns, b.clamp(column, columnCount), at.back());
      results.push_back(finishSum(reader, context, contraction, at.back(), sum));
      result = success(!results.back().empty());
    }
    for (int64_t i = 0; i < epilogueElements && succeeded(result); ++i)
      b.ifThen(inside[i], [&] { storeResults(reader, context, contraction, at[i], results[i]); });
    return Values();
  });
  return result;
}

LogicalResult TileBuilder::run() {
  begin();
  Values sums = addAll();
  if (inputA.isBroken() || inputB.isBroken())
    return failure();
  tile::barrier(b);
  product.store(sums, shared);
  tile::barrier(b);
  return finish();
}

class ContractionStrategy : public StepStrategy {
public:
  ContractionStrategy(const StepContext &context, Contraction contraction)
      : context(context), contraction(std::move(contraction)) {}

  StringRef name() const override { return "contraction"; }
  SearchSpace searchSpace() const override { return tileSpace(contraction); }
  std::optional<BlockNeeds> needs(const SchedulePoint &point) const override {
    const TileShape shape = shapeOf(point);
    return BlockNeeds{shape.threads(), registers(shape), sharedBytes(shape),
                      4.0 * double(shape.tm + shape.tn) / double(shape.tm * shape.tn)};
  }

  LogicalResult build(tile::Builder &b, const SchedulePoint &point, DevicePlan &plan) const override {
    const TileShape shape = shapeOf(point);
    const std::string name = "step_" + std::to_string(plan.functions.size());
    // 8 x 8 sums and what is loaded for them fit into half of the registers, if nothing else is on its way in some.
    const bool isPlain =
        ContractionInput(context, contraction, true).isPlain && ContractionInput(context, contraction, false).isPlain;
    b.beginKernel(name, shape.threads(), isPlain && shape.threads() == 256 ? 2 : 0);
    Reader reader(b, context.placement, context.kernel);
    TileBuilder builder(b, reader, context, contraction, shape);
    if (failed(builder.run()))
      return failure();
    b.endKernel();
    AffineExpr blocks = extentOf(contraction, contraction.batch) *
                        extentOf(contraction, contraction.rows).ceilDiv(shape.bm) *
                        extentOf(contraction, contraction.columns).ceilDiv(shape.bn);
    plan.launches.push_back({unsigned(plan.functions.size()), blocks, reader.parameters});
    plan.functions.push_back({name, uint32_t(shape.threads()), uint32_t(4 * builder.sharedFloats())});
    return success();
  }

private:
  StepContext context;
  Contraction contraction;
};

} // namespace

std::unique_ptr<StepStrategy> matchContraction(const StepContext &context) {
  std::optional<Contraction> contraction = findContraction(context);
  return contraction ? std::make_unique<ContractionStrategy>(context, std::move(*contraction)) : nullptr;
}

} // namespace kiln::cuda
