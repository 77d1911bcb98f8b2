// SPDX-License-Identifier: Apache-2.0
//
//   an outer index   ── a tile of columns ──>            block: lines of threads, each with one element of each column
//                    |  part 0 of the reduction          thread line 0   1   2   0   1   2  ..  down the columns
//                    v  part 1                           then lines are added in pairs, pairs of pairs, ..
//
// 1. A block reduces a part of a tile of columns. Threads take elements of a column in turn.
// 2. If there is one part, the block applies the stage's op to the sums and stores the results. If a run of row
//    reductions reads them instead, and the tile has whole rows, the warps of the block execute the run.
// 3. Otherwise partial results go to scratch memory, and a second launch combines them in order, for each result, or
// for
//    each row of the run.
//
// The number of parts depends on the kernel's bounds and the schedule, so results do not depend on the GPU.
#include "targets/cuda/rows/ColumnReduction.h"

#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/gemm/SplitK.h"
#include "targets/cuda/ptx/Combiner.h"
#include "targets/cuda/ptx/ElementEmitter.h"
#include "targets/cuda/ptx/ScalarOps.h"
#include "targets/cuda/rows/Columns.h"
#include "targets/cuda/rows/RowReduction.h"
#include "targets/cuda/rows/ThreadGroup.h"
#include "targets/cuda/tile/Shared.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;
using arith::CmpIPredicate;
using tile::Values;

/// The loads of a thread that are in flight at a time.
static constexpr int64_t loadsTogether = 4;
/// The columns of a tile, unless a row has more of them: 128 bytes of f32.
static constexpr int64_t columnsOfTile = 32;
/// The most columns that a block reduces at a time.
static constexpr int64_t mostTogether = 64;
/// The threads of a block of the second launch, one for each result.
static constexpr int64_t finishingThreads = 128;
/// A block with fewer elements takes less time than a second launch.
static constexpr int64_t fewElements = 1 << 15;
/// The most terms that a thread adds one after another, as long as there are few parts. Rounding errors accumulate.
static constexpr int64_t mostTerms = 1 << 10;

namespace {

/// How blocks share the elements.
struct ColumnShape {
  int64_t threads = 0, parts = 1;
  int64_t tile = 0;     // columns of a block
  int64_t together = 0; // columns that a block reduces at a time
  bool isFused = false; // the block executes the run
  bool isFirst = false; // a second launch finishes what the block reduces

  int64_t lines() const { return threads / together; } // threads for each column
};

ColumnShape shapeOf(const Columns &columns, int64_t threads, int64_t parts) {
  ColumnShape shape{threads, parts};
  shape.isFused = parts == 1 && columns.hasWholeRows();
  shape.isFirst = parts > 1 || (columns.run && !shape.isFused);
  const int64_t unit = shape.isFused ? columns.width : 1, units = std::max<int64_t>(columns.mostColumns / unit, 1);
  const int64_t tiles = llvm::divideCeil(units, std::max<int64_t>(columnsOfTile / unit, 1));
  shape.tile = int64_t(llvm::divideCeil(units, tiles)) * unit;
  shape.together = int64_t(llvm::divideCeil(shape.tile, llvm::divideCeil(shape.tile, mostTogether)));
  return shape;
}

/// Returns the types of a reduction's results, which Combiner accepts, on the device.
SmallVector<Type> resultTypes(tile::Builder &b, linalg::GenericOp op) {
  return llvm::map_to_vector(op.getDpsInits(), [&](Value init) { return deviceType(b, getElementTypeOrSelf(init)); });
}

/// Splits an index of flattened loops into their indices, the last one innermost.
void splitLoops(tile::Builder &b, ElementEmitter &emitter, linalg::GenericOp op, ArrayRef<unsigned> loops, Value index,
                Values &at) {
  const SmallVector<AffineExpr> extents = loopExtents(op);
  for (size_t i = loops.size(); i-- > 0;) {
    Value size = i == 0 ? Value() : emitter.extent(extents[loops[i]]);
    at[loops[i]] = i == 0 ? index : b.rem(index, size);
    index = i == 0 ? index : b.div(index, size);
  }
}

Value flatten(tile::Builder &b, ElementEmitter &emitter, linalg::GenericOp op, ArrayRef<unsigned> loops,
              ArrayRef<Value> at) {
  const SmallVector<AffineExpr> extents = loopExtents(op);
  Value index = b.integer(0);
  for (auto [number, loop] : llvm::enumerate(loops))
    index = number == 0 ? at[loop] : b.add(b.mul(index, emitter.extent(extents[loop])), at[loop]);
  return index;
}

/// Partial results in scratch memory, [result][part][outer][column].
class Partials {
public:
  Partials(tile::Builder &b, const StageContext &context, const Columns &columns, int64_t parts,
           ElementEmitter &emitter)
      : b(b), context(context), columns(columns), op(columns.op), parts(parts), emitter(emitter) {}

  int64_t bytes() { return int64_t(op.getNumResults()) * ofResult(); }

  void store(Value part, Value outer, Value column, const Values &values) {
    for (auto [number, value] : llvm::enumerate(values))
      b.store(value, address(number), place(part, outer, column));
  }

  /// Combines the partial results of the reduction at these loops.
  Values load(const Combiner &combiner, ArrayRef<Value> loops) {
    Value outer = flatten(b, emitter, op, columns.outer, loops),
          column = flatten(b, emitter, op, columns.columns, loops);
    Values start;
    for (auto [number, init] : llvm::enumerate(op.getDpsInits()))
      start.push_back(emitter.read(init, emitter.written(op, number, loops)));
    constexpr int64_t atATime = 8;
    const int64_t count = std::min(parts, atATime);
    return b.loop(b.integer(parts / count), combiner.neutral(b, start), [&](Value turn, ValueRange last) {
      Values values(last);
      SmallVector<Values> loaded;
      for (int64_t i = 0; i < count; ++i) {
        Value part = b.add(b.mul(turn, b.integer(count)), b.integer(i));
        Values &own = loaded.emplace_back();
        for (auto [number, value] : llvm::enumerate(start))
          own.push_back(b.load(value.getType(), address(number), place(part, outer, column)));
      }
      for (const Values &own : loaded)
        values = combiner.combine(b, values, own);
      return values;
    });
  }

private:
  int64_t ofResult() const { return parts * columns.mostOuter * columns.mostColumns * 4; }
  Value address(size_t result) { return emitter.scratch(partialSumsAt(context) + int64_t(result) * ofResult()); }
  Value place(Value part, Value outer, Value column) {
    Value line = b.add(b.mul(part, emitter.extent(columns.outerCount)), outer);
    return b.add(b.mul(line, emitter.extent(columns.columnCount)), column);
  }

  tile::Builder &b;
  const StageContext &context;
  const Columns &columns;
  linalg::GenericOp op;
  int64_t parts;
  ElementEmitter &emitter;
};

/// Evaluates the stage's op at these loops of the reduction, whose results are known, and stores its results.
LogicalResult storeStage(const StageContext &context, const Columns &columns, ElementEmitter &emitter,
                         ArrayRef<Value> loops, function_ref<Values(ArrayRef<Value>)> results) {
  linalg::GenericOp op = context.stage.op;
  Values at(op.getNumLoops());
  for (ArrayRef<unsigned> which : {ArrayRef(columns.outer), ArrayRef(columns.columns)})
    for (unsigned loop : which)
      at[columns.stageLoops[loop]] = loops[loop];
  emitter.computedReduction = [&](linalg::GenericOp reduction, ArrayRef<Value> own) {
    return reduction == columns.op ? results(own) : Values();
  };
  Values values = emitter.evaluate(op, at);
  emitter.computedReduction = nullptr;
  if (values.empty())
    return failure();
  for (const Store &store : context.stage.stores) {
    const unsigned number = cast<OpResult>(store.value).getResultNumber();
    emitter.store(store, values[number], emitter.written(op, number, at));
  }
  return success();
}

/// Builds the first launch.
class ColumnsBuilder {
public:
  ColumnsBuilder(tile::Builder &b, const StageContext &context, const Columns &columns, const ColumnShape &shape,
                 ElementEmitter &emitter)
      : b(b), context(context), columns(columns), op(columns.op), shape(shape), emitter(emitter),
        combiner(*Combiner::of(columns.op)) {}

  LogicalResult build();
  AffineExpr blocks() const { return columns.outerCount * columns.columnCount.ceilDiv(shape.tile) * shape.parts; }

private:
  Values reducePart(Value column);
  Values combineLines(Values values);
  LogicalResult buildColumns(Value turn);
  LogicalResult buildRun();

  tile::Builder &b;
  const StageContext &context;
  const Columns &columns;
  linalg::GenericOp op;
  ColumnShape shape;
  ElementEmitter &emitter;
  Combiner combiner;
  Value outer, first, part; // what the block reduces; `first`: the first column
  Value line, ofLine;       // the thread's line and its column there
  Values lines, sums;       // shared memory: results of each thread, and of the tile's columns
};

/// Reduces the thread's elements of the part.
Values ColumnsBuilder::reducePart(Value column) {
  Values loops(op.getNumLoops());
  splitLoops(b, emitter, op, columns.outer, outer, loops);
  splitLoops(b, emitter, op, columns.columns, column, loops);
  Values start;
  for (auto [number, init] : llvm::enumerate(op.getDpsInits()))
    start.push_back(emitter.read(init, emitter.written(op, number, loops)));
  Value isFirst = b.compare(CmpIPredicate::eq, b.add(line, part), b.integer(0));
  for (auto [value, neutral] : llvm::zip_equal(start, combiner.neutral(b, start)))
    value = b.select(isFirst, value, neutral);
  Value length = emitter.extent(columns.length), parts = b.integer(shape.parts);
  Value ofPart = b.div(b.add(length, b.integer(shape.parts - 1)), parts), from = b.mul(part, ofPart);
  Value to = b.createOrFold<arith::MinSIOp>(b.add(from, ofPart), length);
  from = b.add(from, line);
  Value stride = b.integer(shape.lines());
  Value count =
      b.div(b.add(b.createOrFold<arith::MaxSIOp>(b.sub(to, from), b.integer(0)), b.integer(shape.lines() - 1)), stride);
  auto add = [&](Value number, Values values) {
    Values at(loops);
    splitLoops(b, emitter, op, columns.reduced, b.add(from, b.mul(number, stride)), at);
    return emitter.reduceOnce(op, at, values);
  };
  Value turns = b.div(count, b.integer(loadsTogether)), done = b.mul(turns, b.integer(loadsTogether));
  Values values = b.loop(turns, start, [&](Value turn, ValueRange last) {
    Values next(last);
    for (int64_t i = 0; i < loadsTogether; ++i)
      next = add(b.add(b.mul(turn, b.integer(loadsTogether)), b.integer(i)), std::move(next));
    return next;
  });
  return b.loop(b.sub(count, done), values,
                [&](Value number, ValueRange last) { return add(b.add(done, number), Values(last)); });
}

/// Combines the results of a column's threads; those of line 0 get them all. Lines of the upper half of those that are
/// left have written their results, which no thread overwrites before others have read them.
Values ColumnsBuilder::combineLines(Values values) {
  const int64_t count = shape.lines();
  const SmallVector<Type> types(ValueRange(values).getTypes());
  auto writeAndMeet = [&](int64_t left) {
    b.ifThen(b.isBelow(line, b.integer(left)), [&] {
      for (auto [value, address] : llvm::zip_equal(values, lines))
        b.store(value, address, b.threadId());
    });
    tile::barrier(b);
  };
  int64_t left = count;
  for (int64_t half = int64_t(llvm::PowerOf2Ceil(count)) / 2; half > 0; half /= 2) {
    writeAndMeet(left);
    auto combined = [&] {
      Values others;
      for (auto [type, address] : llvm::zip_equal(types, lines))
        others.push_back(b.load(type, address, b.add(b.threadId(), b.integer(half * shape.together))));
      return combiner.combine(b, values, others);
    };
    values = b.ifElse(b.isBelow(line, b.integer(left - half)), types, combined, [&] { return values; });
    left = half;
  }
  return values;
}

/// Reduces the columns of one turn.
LogicalResult ColumnsBuilder::buildColumns(Value turn) {
  Value ofTile = b.add(b.mul(turn, b.integer(shape.together)), ofLine), column = b.add(first, ofTile);
  Value isThere =
      b.both(b.isBelow(line, b.integer(shape.lines())),
             b.both(b.isBelow(ofTile, b.integer(shape.tile)), b.isBelow(column, emitter.extent(columns.columnCount))));
  const SmallVector<Type> types = resultTypes(b, op);
  Values none;
  for (Type type : types)
    none.push_back(arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(type))));
  // Threads without a column take part in barriers. Nothing reads what they have.
  Values values = b.ifElse(isThere, types, [&] { return reducePart(column); }, [&] { return none; });
  values = combineLines(std::move(values));
  LogicalResult result = success();
  b.ifThen(b.both(isThere, b.compare(CmpIPredicate::eq, line, b.integer(0))), [&] {
    if (shape.isFused) {
      for (auto [value, address] : llvm::zip_equal(values, sums))
        b.store(value, address, ofTile);
      return;
    }
    if (shape.isFirst) {
      Partials(b, context, columns, shape.parts, emitter).store(part, outer, column, values);
      return;
    }
    Values loops(op.getNumLoops());
    splitLoops(b, emitter, op, columns.outer, outer, loops);
    splitLoops(b, emitter, op, columns.columns, column, loops);
    result = storeStage(context, columns, emitter, loops, [&](ArrayRef<Value>) { return values; });
  });
  return result;
}

/// Executes the run: a warp takes a row of the tile at a time.
LogicalResult ColumnsBuilder::buildRun() {
  emitter.computedReduction = [&](linalg::GenericOp reduction, ArrayRef<Value> loops) {
    Values values;
    if (reduction != op)
      return values;
    Value place = b.sub(flatten(b, emitter, op, columns.columns, loops), first);
    for (auto [type, address] : llvm::zip_equal(resultTypes(b, op), sums))
      values.push_back(b.load(type, address, place));
    return values;
  };
  const int64_t rows = shape.tile / columns.width, warps = shape.threads / lanesOfWarp;
  Value width = b.integer(columns.width), columnCount = emitter.extent(columns.columnCount);
  Value firstRow = b.div(b.add(b.mul(outer, columnCount), first), width),
        warp = b.div(b.threadId(), b.integer(lanesOfWarp));
  StageContext next{context.kernel, context.placement, context.placement.stages[columns.run->first],
                    columns.run->first};
  LogicalResult result = success();
  b.loop(b.integer(int64_t(llvm::divideCeil(rows, warps))), {}, [&](Value turn, ValueRange) {
    Value row = b.add(b.mul(turn, b.integer(warps)), warp);
    Value isThere = b.both(b.isBelow(row, b.integer(rows)), b.isBelow(b.add(first, b.mul(row, width)), columnCount));
    b.ifThen(isThere, [&] { // all threads of a warp, or none
      ThreadGroup threadGroup(b, b.add(firstRow, row));
      result = buildRow(b, *columns.run, next, emitter, threadGroup);
    });
    return Values();
  });
  emitter.computedReduction = nullptr;
  return result;
}

LogicalResult ColumnsBuilder::build() {
  Value block = b.blockId(), tiles = emitter.extent(columns.columnCount.ceilDiv(shape.tile));
  first = b.mul(b.rem(block, tiles), b.integer(shape.tile)); // blocks of all columns of a part run together
  block = b.div(block, tiles);
  part = b.rem(block, b.integer(shape.parts));
  outer = b.div(block, b.integer(shape.parts));
  line = b.div(b.threadId(), b.integer(shape.together));
  ofLine = b.rem(b.threadId(), b.integer(shape.together));
  for (Type type : resultTypes(b, op)) {
    lines.push_back(tile::addShared(b, type, shape.threads));
    if (shape.isFused)
      sums.push_back(tile::addShared(b, type, shape.tile));
  }
  LogicalResult result = success();
  const int64_t turns = int64_t(llvm::divideCeil(shape.tile, shape.together));
  b.loop(b.integer(turns), {}, [&](Value turn, ValueRange) {
    result = buildColumns(turn);
    if (turns > 1 || shape.isFused)
      tile::barrier(b);
    return Values();
  });
  if (failed(result) || !shape.isFused)
    return result;
  return buildRun();
}

class ColumnReduction : public StageStrategy {
public:
  ColumnReduction(const StageContext &context, Columns found) : context(context), columns(std::move(found)) {
    if (!columns.run)
      return;
    for (const Store &store : context.stage.stores)
      inRegisters.push_back(store.value);
    llvm::append_range(inRegisters, columns.run->unstored);
  }

  StringRef name() const override { return "columns"; }
  size_t numStages() const override { return 1 + (columns.run ? columns.run->count : 0); }
  ArrayRef<Value> unstored() const override { return inRegisters; }
  SearchSpace searchSpace() const override;
  std::optional<BlockNeeds> needs(const ScheduleConfig &config) const override {
    return BlockNeeds{config.at("columns_threads"), 48, 0, 0};
  }
  LogicalResult build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const override;

private:
  int64_t defaultParts(int64_t threads) const;
  LogicalResult buildSecond(tile::Builder &b, int64_t parts, LaunchPlan &plan) const;
  LogicalResult buildRows(tile::Builder &b, ElementEmitter &emitter, int64_t threads) const;
  LogicalResult buildResults(tile::Builder &b, ElementEmitter &emitter, Partials &partials) const;

  StageContext context;
  Columns columns;
  SmallVector<Value> inRegisters;
};

/// One part if there are enough blocks, or if these have few elements: else enough for four blocks per multiprocessor,
/// as long as each thread has 16 elements.
int64_t ColumnReduction::defaultParts(int64_t threads) const {
  const int64_t outer = std::max<int64_t>(columns.leastOuter, 1), length = columns.mostLength;
  auto blocksOf = [&](const ColumnShape &shape) {
    return outer * int64_t(llvm::divideCeil(columns.mostColumns, shape.tile));
  };
  const ColumnShape whole = shapeOf(columns, threads, 1);
  auto termsOf = [&](int64_t parts) { return length / parts / whole.lines(); };
  if ((length * whole.tile <= fewElements || blocksOf(whole) >= 2 * leastMultiprocessors) && termsOf(1) <= mostTerms)
    return 1;
  const ColumnShape shared = shapeOf(columns, threads, 2);
  int64_t parts = 1;
  while (parts < 256 && length * shared.tile >= 2 * parts * threads * 16 &&
         (parts * blocksOf(shared) < 4 * leastMultiprocessors || termsOf(parts) > mostTerms))
    parts *= 2;
  return parts;
}

SearchSpace ColumnReduction::searchSpace() const {
  SearchSpace space;
  space.push_back(makeParameter("columns_threads", {128, 256, 512, 1024}, 512));
  std::vector<int64_t> parts{1};
  for (int64_t count = 2; count <= 256 && count * 16 <= columns.mostLength; count *= 2)
    parts.push_back(count);
  space.push_back(makeParameter("columns_parts", parts, defaultParts(512)));
  return space;
}

/// The results of a row, each of which is read once for each reduction, are combined by the threads that read them.
LogicalResult ColumnReduction::buildRows(tile::Builder &b, ElementEmitter &emitter, int64_t threads) const {
  StageContext next{context.kernel, context.placement, context.placement.stages[columns.run->first],
                    columns.run->first};
  ThreadGroup threadGroup(b, threads, 1);
  return buildRow(b, *columns.run, next, emitter, threadGroup);
}

LogicalResult ColumnReduction::buildResults(tile::Builder &b, ElementEmitter &emitter, Partials &partials) const {
  Value element = b.add(b.mul(b.blockId(), b.integer(finishingThreads)), b.threadId());
  Value count = emitter.extent(columns.columnCount);
  linalg::GenericOp op = columns.op;
  const Combiner combiner = *Combiner::of(op);
  LogicalResult result = success();
  b.ifThen(b.isBelow(element, emitter.extent(columns.outerCount * columns.columnCount)), [&] {
    Values loops(op.getNumLoops());
    splitLoops(b, emitter, op, columns.outer, b.div(element, count), loops);
    splitLoops(b, emitter, op, columns.columns, b.rem(element, count), loops);
    result =
        storeStage(context, columns, emitter, loops, [&](ArrayRef<Value> own) { return partials.load(combiner, own); });
  });
  return result;
}

LogicalResult ColumnReduction::buildSecond(tile::Builder &b, int64_t parts, LaunchPlan &plan) const {
  const std::string name = "columns_" + std::to_string(plan.functions.size());
  const int64_t ofRow = std::clamp<int64_t>(
      columns.run ? int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(columns.run->length, 4))) : 0, lanesOfWarp, 256);
  const tile::KernelLaunch launch{.threads = columns.run ? ofRow : finishingThreads};
  b.beginKernel(name, launch);
  b.launchDependents();
  ElementEmitter emitter(b, context.placement, context.kernel);
  Partials partials(b, context, columns, parts, emitter);
  const Combiner combiner = *Combiner::of(columns.op);
  emitter.computedReduction = [&](linalg::GenericOp op, ArrayRef<Value> loops) {
    return op == columns.op ? partials.load(combiner, loops) : Values();
  };
  if (failed(columns.run ? buildRows(b, emitter, ofRow) : buildResults(b, emitter, partials)))
    return failure();
  b.endKernel();
  MLIRContext *mlir = context.kernel->getContext();
  AffineExpr blocks = columns.run ? mlir::kiln::getProduct(columns.run->rows, mlir)
                                  : (columns.outerCount * columns.columnCount).ceilDiv(finishingThreads);
  plan.launches.push_back({unsigned(plan.functions.size()), blocks, emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  plan.scratchBytes = std::max(plan.scratchBytes, partialSumsAt(context) + partials.bytes());
  return success();
}

LogicalResult ColumnReduction::build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const {
  const ColumnShape shape = shapeOf(columns, config.at("columns_threads"), config.at("columns_parts"));
  const std::string name = "columns_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = shape.threads};
  b.beginKernel(name, launch);
  b.launchDependents();
  ElementEmitter emitter(b, context.placement, context.kernel);
  ColumnsBuilder builder(b, context, columns, shape, emitter);
  if (failed(builder.build()))
    return failure();
  b.endKernel();
  plan.launches.push_back({unsigned(plan.functions.size()), builder.blocks(), emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  return shape.isFirst ? buildSecond(b, shape.parts, plan) : success();
}

} // namespace

std::unique_ptr<StageStrategy> matchColumns(const StageContext &context) {
  std::optional<Columns> columns = findColumns(context);
  return columns ? std::make_unique<ColumnReduction>(context, std::move(*columns)) : nullptr;
}

} // namespace kiln::cuda
