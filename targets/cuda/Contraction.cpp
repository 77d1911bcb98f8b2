// SPDX-License-Identifier: Apache-2.0
//
// 1. A block for each tile of bm x bn sums. Blocks with neighbouring numbers share inputs: they go through eight tiles
//    of rows before the next tile of columns.
// 2. Stages of shared memory hold bk of the depth. While one is added, those behind it are on their way.
// 3. The sums, which CUDA cores or tensor cores make (Product.h), go to shared memory, from where each thread takes one
//    of a row in turn, so that neighbours store neighbours. It has read all that it stores over, as one that does an
//    element from the start.
// 4. Where blocks share the depth of a tile, a second launch finishes what they have (SplitDepth.h).
#include "targets/cuda/Contraction.h"

#include "targets/cuda/Product.h"
#include "targets/cuda/SplitDepth.h"
#include "targets/cuda/Wgmma.h"
#include "targets/cuda/WgmmaShape.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr int64_t rasterRows = 8;       // tiles of rows that blocks go through first
constexpr int64_t epilogueElements = 4; // that a thread finishes at a time: one waits for memory with the others

class TileBuilder {
public:
  TileBuilder(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
              const TileShape &shape, const SplitDepth &split)
      : b(b), reader(reader), context(context), contraction(contraction), shape(shape), split(split),
        inputA(b, reader, context, contraction, true, shape), inputB(b, reader, context, contraction, false, shape),
        product(createProduct(b, shape, inputA, inputB)) {}

  LogicalResult run();
  int64_t sharedFloats() const { return std::max(shape.stages * stageSize(), shape.bm * sumPitch(shape)); }

private:
  void begin();
  int64_t stageSize() const { return inputA.size() + inputB.size(); }
  Value stageOf(Value number) { return tile::advance(b, shared, b.mul(number, b.integer(stageSize()))); }
  Value behind(Value stage) { return tile::advance(b, stage, inputA.size()); }
  Values addAll();
  LogicalResult finish();
  LogicalResult finish(ArrayRef<Value> rows, ArrayRef<Value> columns, ArrayRef<Value> sums, ArrayRef<Value> inside);

  tile::Builder &b;
  Reader &reader;
  const StepContext &context;
  const Contraction &contraction;
  const TileShape &shape;
  const SplitDepth &split;
  InputTile inputA, inputB;
  std::unique_ptr<Product> product;
  Value thread, shared, firstRow, firstColumn, rowCount, columnCount;
  Value batch, part;           // numbers of the batch and of the block's part of the depth
  Value firstStep, steps, end; // of that part: in stages, and where it ends
  Values loops;                // with the numbers of the batch
};

/// The block's number as that of the batch, of the part of the depth and of the tile.
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
  Value number = b.div(block, ofBatch);
  part = b.rem(number, b.integer(split.parts())), batch = b.div(number, b.integer(split.parts()));
  splitIndex(b, reader, contraction, contraction.batch, batch, loops);
  Value tile = b.rem(block, ofBatch), ofGroup = b.mul(across, b.integer(rasterRows));
  Value first = b.mul(b.div(tile, ofGroup), b.integer(rasterRows)), inGroup = b.rem(tile, ofGroup);
  Value height = b.createOrFold<arith::MinSIOp>(b.sub(down, first), b.integer(rasterRows));
  firstRow = b.mul(b.add(first, b.rem(inGroup, height)), b.integer(shape.bm));
  firstColumn = b.mul(b.div(inGroup, height), b.integer(shape.bn));
  Value depth = reader.extent(extentOf(contraction, contraction.depth)), all = tiles(depth, shape.bk);
  Value ofPart = tiles(all, split.parts());
  firstStep = b.mul(part, ofPart);
  steps = b.createOrFold<arith::MinSIOp>(b.sub(all, firstStep), ofPart); // below 0: none
  end = b.createOrFold<arith::MinSIOp>(depth, b.mul(b.add(firstStep, ofPart), b.integer(shape.bk)));
  inputA.begin(thread, firstRow, end, loops);
  inputB.begin(thread, firstColumn, end, loops);
  product->begin(thread);
}

/// A stage is written again in the step behind the one that reads it, past its barrier.
Values TileBuilder::addAll() {
  const bool isAsync = inputA.isAsync() || inputB.isAsync();
  auto fetch = [&](Value step, Value stage) {
    Value start = b.mul(b.add(firstStep, step), b.integer(shape.bk));
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
    put(fetch(b.integer(i), stage), stage);
  }
  Values carried = product->zeros();
  carried.append({b.integer(0), b.integer(ahead)}); // the stage to read and the one to write
  Values sums = b.loop(steps, carried, [&](Value step, ValueRange values) {
    if (isAsync)
      tile::awaitCopies(b, ahead - 1);
    tile::barrier(b);
    Value reading = values[values.size() - 2], writing = values.back();
    Value from = stageOf(reading), to = stageOf(writing);
    auto fetched = fetch(b.add(step, b.integer(ahead)), to);
    Values next = product->add(from, behind(from), values.drop_back(2));
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
    Values rows, columns, sums, inside;
    for (int64_t i = 0; i < epilogueElements; ++i) {
      Value element = b.add(first, b.integer(i * shape.threads()));
      Value row = b.div(element, b.integer(shape.bn)), column = b.rem(element, b.integer(shape.bn));
      Value place = b.add(b.mul(row, b.integer(sumPitch(shape))), column);
      sums.push_back(tile::loadOne(b, tile::advance(b, shared, place)));
      rows.push_back(b.add(firstRow, row)), columns.push_back(b.add(firstColumn, column));
      inside.push_back(b.both(b.isBelow(rows.back(), rowCount), b.isBelow(columns.back(), columnCount)));
    }
    if (!split.isSplit())
      result = finish(rows, columns, sums, inside);
    for (int64_t i = 0; i < epilogueElements && split.isSplit(); ++i)
      b.ifThen(inside[i], [&] { split.store(b, reader, part, batch, rows[i], columns[i], sums[i]); });
    return Values();
  });
  return result;
}

LogicalResult TileBuilder::finish(ArrayRef<Value> rows, ArrayRef<Value> columns, ArrayRef<Value> sums,
                                  ArrayRef<Value> inside) {
  SmallVector<Values> at, results;
  for (auto [row, column, sum] : llvm::zip_equal(rows, columns, sums)) {
    at.push_back(loops);
    splitIndex(b, reader, contraction, contraction.rows, b.clamp(row, rowCount), at.back());
    splitIndex(b, reader, contraction, contraction.columns, b.clamp(column, columnCount), at.back());
    results.push_back(finishSum(reader, context, contraction, at.back(), sum));
    if (results.back().empty())
      return failure();
  }
  for (size_t i = 0; i < sums.size(); ++i)
    b.ifThen(inside[i], [&] { storeResults(reader, context, contraction, at[i], results[i]); });
  return success();
}

LogicalResult TileBuilder::run() {
  begin();
  Values sums = addAll();
  if (inputA.isBroken() || inputB.isBroken())
    return failure();
  b.letNextBegin();
  tile::barrier(b);
  product->store(sums, shared);
  tile::barrier(b);
  return finish();
}

class ContractionStrategy : public StepStrategy {
public:
  ContractionStrategy(const StepContext &context, Contraction contraction)
      : context(context), contraction(std::move(contraction)) {}

  StringRef name() const override { return "contraction"; }
  SearchSpace searchSpace() const override {
    SearchSpace space = tileSpace(context, contraction), mapped = wgmmaSpace(context, contraction);
    llvm::append_range(space, mapped);
    llvm::append_range(space.rules, mapped.rules);
    return space;
  }
  std::optional<BlockNeeds> needs(const SchedulePoint &point) const override {
    return needsOf(tileShapeOf(mmaTypeOf(context, contraction), point));
  }

  LogicalResult build(tile::Builder &b, const SchedulePoint &point, DevicePlan &plan) const override {
    const TileShape shape = tileShapeOf(mmaTypeOf(context, contraction), point);
    const SplitDepth split(context, contraction, point.at("split_k"), shape.bk);
    const std::string name = "step_" + std::to_string(plan.functions.size());
    // 8 x 8 sums and what is loaded for them fit into half of the registers, if nothing else is on its way in some.
    const bool areCopied = isCopied(ContractionInput(context, contraction, true), shape.mma) &&
                           isCopied(ContractionInput(context, contraction, false), shape.mma);
    const tile::KernelLaunch launch{.threads = shape.threads(),
                                    .blocks = !shape.mma && areCopied && shape.threads() == 256 ? 2 : 0,
                                    .isEarly = false};
    b.beginKernel(name, launch);
    Reader reader(b, context.placement, context.kernel);
    TileBuilder builder(b, reader, context, contraction, shape, split);
    if (failed(builder.run()))
      return failure();
    b.endKernel();
    AffineExpr blocks = extentOf(contraction, contraction.batch) *
                        extentOf(contraction, contraction.rows).ceilDiv(shape.bm) *
                        extentOf(contraction, contraction.columns).ceilDiv(shape.bn) * split.parts();
    plan.launches.push_back({unsigned(plan.functions.size()), blocks, reader.parameters});
    plan.functions.push_back(makeFunction(name, launch, 4 * builder.sharedFloats()));
    return split.isSplit() ? split.buildSecond(b, plan) : success();
  }

  std::optional<BlockNeeds> mappedNeeds(const SchedulePoint &point) const override {
    return hasWgmma(context, contraction) ? std::optional(needsOf(wgmmaShapeOf(point))) : std::nullopt;
  }
  SmallVector<std::string> idleParameters(int64_t capability) const override;

  LogicalResult buildMapped(tile::Builder &b, size_t first, const SchedulePoint &point,
                            DevicePlan &plan) const override {
    return buildWgmma(b, context, contraction, first, point, plan);
  }

private:
  StepContext context;
  Contraction contraction;
};

/// Those of the form that is not launched; of a GPU of 9.0 the plain one may be if a pitch is not known.
SmallVector<std::string> ContractionStrategy::idleParameters(int64_t capability) const {
  const bool isMapped = capability == 90 && hasWgmma(context, contraction);
  if (isMapped && !isSureToBeMapped(*findWgmmaProduct(context, contraction)))
    return {};
  SmallVector<std::string> keys;
  for (const TuningParameter &parameter : isMapped ? tileSpace(context, contraction) : wgmmaSpace(context, contraction))
    keys.push_back(parameter.key);
  return keys;
}

} // namespace

std::unique_ptr<StepStrategy> matchContraction(const StepContext &context) {
  std::optional<Contraction> contraction = findContraction(context);
  return contraction ? std::make_unique<ContractionStrategy>(context, std::move(*contraction)) : nullptr;
}

} // namespace kiln::cuda
