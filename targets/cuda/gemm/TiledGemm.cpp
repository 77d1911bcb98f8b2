// SPDX-License-Identifier: Apache-2.0
//
// 1. A block computes a tile of bm x bn accumulators (TileScheduler.h), or blocks share the K iterations of all tiles
//    (StreamK.h).
// 2. Pipeline stages in shared memory hold bk of K. While one is accumulated, the copies of the following ones are in
//    flight.
// 3. The accumulators, which CUDA cores or tensor cores compute (Accumulators.h), go to shared memory, from where each
//    thread takes one of a row in turn, so that neighbouring threads store neighbouring elements. A thread reads
//    everything that it overwrites before it stores, as with one thread per element.
// 4. If blocks share the K of a tile, a second launch finishes their partial sums (SplitK.h, StreamK.h).
#include "targets/cuda/gemm/TiledGemm.h"

#include "targets/cuda/gemm/Accumulators.h"
#include "targets/cuda/gemm/SplitK.h"
#include "targets/cuda/gemm/StreamK.h"
#include "targets/cuda/gemm/WgmmaKernel.h"
#include "targets/cuda/gemm/WgmmaShape.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr int64_t epilogueElements = 4; // finished by a thread at a time, so that their loads overlap

class TileBuilder {
public:
  TileBuilder(tile::Builder &b, ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
              const TileShape &shape, const SplitK &split, const StreamK &stream)
      : b(b), emitter(emitter), context(context), contraction(contraction), shape(shape), split(split), stream(stream),
        scheduler(b, shape), inputA(b, emitter, context, contraction, true, shape),
        inputB(b, emitter, context, contraction, false, shape), product(createProduct(b, shape, inputA, inputB)) {}

  LogicalResult run();
  int64_t sharedFloats() const { return std::max(shape.stages * stageSize(), shape.bm * sumPitch(shape)); }

private:
  /// Some elements of a tile, by their row-major numbers in it.
  struct Elements {
    Values numbers, rows, columns, sums, inside;
  };

  LogicalResult runTile();
  LogicalResult runStream();
  void begin(const TileScheduler::Tile &at, Value first, Value count);
  int64_t stageSize() const { return inputA.size() + inputB.size(); }
  Value stageOf(Value number) { return tile::advance(b, shared, b.mul(number, b.integer(stageSize()))); }
  Value stageOfB(Value stage) { return tile::advance(b, stage, inputA.size()); }
  LogicalResult addAll();
  Values addSteps();
  void eachElements(function_ref<void(const Elements &)> body);
  LogicalResult finish();
  LogicalResult finish(const Elements &elements);

  tile::Builder &b;
  ElementEmitter &emitter;
  const StageContext &context;
  const Contraction &contraction;
  const TileShape &shape;
  const SplitK &split;
  const StreamK &stream;
  TileScheduler scheduler;
  InputTile inputA, inputB;
  std::unique_ptr<Product> product;
  Value thread, shared;
  TileScheduler::Tile tile;
  Value firstStep, steps; // the block's part of K
  Values loops;           // with the batch indices
};

/// Begins a part of a tile's K: `count` iterations from `first` on; none if `count` is below 0.
void TileBuilder::begin(const TileScheduler::Tile &at, Value first, Value count) {
  tile = at, firstStep = first, steps = count;
  linalg::GenericOp op = contraction.op;
  loops.resize(op.getNumLoops());
  splitIndex(b, emitter, contraction, contraction.batch, tile.batch, loops);
  Value end = b.mul(b.add(firstStep, steps), b.integer(shape.bk));
  end = b.createOrFold<arith::MinSIOp>(scheduler.kExtent, end);
  inputA.begin(thread, tile.row, end, loops);
  inputB.begin(thread, tile.column, end, loops);
}

/// A stage is written again in the iteration after the one that reads it, past its barrier.
Values TileBuilder::addSteps() {
  const bool isAsync = inputA.isAsync() || inputB.isAsync();
  auto fetch = [&](Value step, Value stage) {
    Value start = b.mul(b.add(firstStep, step), b.integer(shape.bk));
    Values a = inputA.fetch(start, stage), c = inputB.fetch(start, stageOfB(stage));
    if (isAsync)
      tile::commitCopies(b);
    return std::pair(a, c);
  };
  auto put = [&](const std::pair<Values, Values> &fetched, Value stage) {
    inputA.put(fetched.first, stage);
    inputB.put(fetched.second, stageOfB(stage));
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
    Values next = product->add(from, stageOfB(from), values.drop_back(2));
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

/// Computes the accumulators of the part, and stores them to shared memory.
LogicalResult TileBuilder::addAll() {
  Values sums = addSteps();
  if (inputA.isBroken() || inputB.isBroken())
    return failure();
  if (!stream.isStreamed())
    b.launchDependents();
  tile::barrier(b);
  product->store(sums, shared);
  tile::barrier(b);
  return success();
}

void TileBuilder::eachElements(function_ref<void(const Elements &)> body) {
  const int64_t perIteration = shape.threads() * epilogueElements;
  b.loop(b.integer(shape.bm * shape.bn / perIteration), {}, [&](Value iteration, ValueRange) {
    Value first = b.add(b.mul(iteration, b.integer(perIteration)), thread);
    Elements e;
    for (int64_t i = 0; i < epilogueElements; ++i) {
      Value element = b.add(first, b.integer(i * shape.threads()));
      Value row = b.div(element, b.integer(shape.bn)), column = b.rem(element, b.integer(shape.bn));
      Value place = b.add(b.mul(row, b.integer(sumPitch(shape))), column);
      e.numbers.push_back(element);
      e.sums.push_back(tile::loadOne(b, tile::advance(b, shared, place)));
      e.rows.push_back(b.add(tile.row, row)), e.columns.push_back(b.add(tile.column, column));
      e.inside.push_back(
          b.both(b.isBelow(e.rows.back(), scheduler.rowCount), b.isBelow(e.columns.back(), scheduler.columnCount)));
    }
    body(e);
    return Values();
  });
}

LogicalResult TileBuilder::finish(const Elements &elements) {
  SmallVector<Values> at, results;
  for (auto [row, column, sum] : llvm::zip_equal(elements.rows, elements.columns, elements.sums)) {
    at.push_back(loops);
    splitIndex(b, emitter, contraction, contraction.rows, b.clamp(row, scheduler.rowCount), at.back());
    splitIndex(b, emitter, contraction, contraction.columns, b.clamp(column, scheduler.columnCount), at.back());
    results.push_back(finishSum(emitter, context, contraction, at.back(), sum));
    if (results.back().empty())
      return failure();
  }
  for (size_t i = 0; i < elements.sums.size(); ++i)
    b.ifThen(elements.inside[i], [&] { storeResults(emitter, context, contraction, at[i], results[i]); });
  return success();
}

/// Finishes all elements of the tile.
LogicalResult TileBuilder::finish() {
  LogicalResult result = success();
  eachElements([&](const Elements &e) { result = finish(e); });
  return result;
}

/// Splits the block index into the batch index, the part of K and the tile.
LogicalResult TileBuilder::runTile() {
  scheduler.begin(emitter, contraction);
  Value block = b.blockId(), number = b.div(block, scheduler.ofBatch), parts = b.integer(split.parts());
  Value part = b.rem(number, parts), batch = b.div(number, parts);
  Value ofPart = b.div(b.add(scheduler.steps, b.integer(split.parts() - 1)), parts), first = b.mul(part, ofPart);
  Value count = b.createOrFold<arith::MinSIOp>(b.sub(scheduler.steps, first), ofPart);
  begin(scheduler.tileOf(batch, b.rem(block, scheduler.ofBatch)), first, count);
  if (failed(addAll()))
    return failure();
  if (!split.isSplit())
    return finish();
  eachElements([&](const Elements &e) {
    for (int64_t i = 0; i < epilogueElements; ++i)
      b.ifThen(e.inside[i], [&] { split.store(b, emitter, part, batch, e.rows[i], e.columns[i], e.sums[i]); });
  });
  return success();
}

/// Shared memory is read before the stages of the next tile overwrite it.
LogicalResult TileBuilder::runStream() {
  LogicalResult result = success();
  auto store = [&](const StreamK::Part &part) {
    eachElements([&](const Elements &e) {
      for (int64_t i = 0; i < epilogueElements; ++i)
        b.ifThen(e.inside[i], [&] { stream.store(b, emitter, part, e.numbers[i], e.sums[i]); });
    });
    return Values();
  };
  stream.each(b, scheduler, emitter, [&](const StreamK::Part &part) {
    begin(part.tile, part.firstStep, part.steps);
    result = addAll();
    if (failed(result))
      return;
    auto whole = [&] {
      result = finish();
      return Values();
    };
    b.ifElse(part.isWhole, TypeRange(), whole, [&] { return store(part); });
    tile::barrier(b);
  });
  b.launchDependents();
  return result;
}

LogicalResult TileBuilder::run() {
  thread = b.threadId();
  shared = tile::sharedMemory(b);
  product->begin(thread);
  return stream.isStreamed() ? runStream() : runTile();
}

class ContractionStrategy : public StageStrategy {
public:
  ContractionStrategy(const StageContext &context, Contraction contraction)
      : context(context), contraction(std::move(contraction)) {}

  StringRef name() const override { return "contraction"; }
  SearchSpace searchSpace() const override {
    SearchSpace space = tileSpace(context, contraction), tma = wgmmaSpace(context, contraction);
    llvm::append_range(space, tma);
    llvm::append_range(space.rules, tma.rules);
    return space;
  }
  std::optional<BlockNeeds> needs(const ScheduleConfig &config) const override {
    return needsOf(tileShapeOf(mmaTypeOf(context, contraction), config));
  }

  LogicalResult build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const override {
    const TileShape shape = tileShapeOf(mmaTypeOf(context, contraction), config);
    const SplitK split(context, contraction, config.at("split_k"), shape.bk);
    const StreamK stream(context, contraction, shape, config.at("stream_k"));
    const std::string name = "step_" + std::to_string(plan.functions.size());
    // 8 x 8 accumulators and their operands fit into half of the registers, if no registers hold loads in flight.
    const bool areCopied = isCopied(ContractionInput(context, contraction, true), shape.mma) &&
                           isCopied(ContractionInput(context, contraction, false), shape.mma);
    const tile::KernelLaunch launch{.threads = shape.threads(),
                                    .blocks = !shape.mma && areCopied && shape.threads() == 256 ? 2 : 0,
                                    .isDependentLaunch = false};
    b.beginKernel(name, launch);
    ElementEmitter emitter(b, context.placement, context.kernel);
    TileBuilder builder(b, emitter, context, contraction, shape, split, stream);
    if (failed(builder.run()))
      return failure();
    b.endKernel();
    AffineExpr blocks = stream.isStreamed() ? getAffineConstantExpr(stream.blocks(), context.kernel->getContext())
                                            : tilesOf(contraction, shape) * split.parts();
    plan.launches.push_back({unsigned(plan.functions.size()), blocks, emitter.parameters});
    plan.functions.push_back(makeFunction(name, launch, 4 * builder.sharedFloats()));
    if (stream.isStreamed())
      return stream.buildSecond(b, plan);
    return split.isSplit() ? split.buildSecond(b, plan) : success();
  }

  std::optional<BlockNeeds> tmaNeeds(const ScheduleConfig &config) const override {
    return hasWgmma(context, contraction) ? std::optional(needsOf(wgmmaShapeOf(config))) : std::nullopt;
  }
  SmallVector<std::string> idleParameters(int64_t capability) const override;

  LogicalResult buildTma(tile::Builder &b, size_t first, const ScheduleConfig &config,
                         LaunchPlan &plan) const override {
    return buildWgmma(b, context, contraction, first, config, plan);
  }

private:
  StageContext context;
  Contraction contraction;
};

/// Returns the parameters of the variant that is not launched. On a GPU of 9.0 the base variant may be launched if a
/// pitch is not known.
SmallVector<std::string> ContractionStrategy::idleParameters(int64_t capability) const {
  const bool hasTma = capability == 90 && hasWgmma(context, contraction);
  if (hasTma && !isSureToUseTma(*findWgmmaProduct(context, contraction)))
    return {};
  SmallVector<std::string> keys;
  for (const TuningParameter &parameter : hasTma ? tileSpace(context, contraction) : wgmmaSpace(context, contraction))
    keys.push_back(parameter.key);
  return keys;
}

} // namespace

std::unique_ptr<StageStrategy> matchContraction(const StageContext &context) {
  std::optional<Contraction> contraction = findContraction(context);
  return contraction ? std::make_unique<ContractionStrategy>(context, std::move(*contraction)) : nullptr;
}

} // namespace kiln::cuda
