// SPDX-License-Identifier: Apache-2.0
//
// A line is the elements along the axis of the sums. A tile of it is divided into segments of consecutive elements:
//
//   along the innermost axis   a segment is a warp's: 32 lanes with one element of each of `ofThread` groups of 32
//   along another axis         a segment is a thread's: `ofThread` elements; neighbouring threads have neighbouring
//   lines
//
// 1. Threads load a tile's elements and compute sums from the start of each segment on. Lanes of a warp are added in
//    pairs, pairs of pairs and so on, groups of 32 and a thread's elements one after the other.
// 2. Segments' totals are added, in order, to the sum before the tile. They pass through shared memory if a line has
//    several segments.
// 3. Each element's sum is the sum before its segment and that within it. A thread that has a whole line adds element
//    by element.
//
// A thread reads everything that an element needs before it stores that element, and no other thread reads it.
#include "targets/cuda/rows/RunningSum.h"

#include "compiler/dialect/Extents.h"
#include "compiler/kernel/CumulativeSum.h"
#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/ptx/Combiner.h"
#include "targets/cuda/ptx/ElementEmitter.h"
#include "targets/cuda/ptx/ScalarOps.h"
#include "targets/cuda/rows/StageReductions.h"
#include "targets/cuda/rows/ThreadGroup.h"
#include "targets/cuda/tile/Shared.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;
using arith::CmpIPredicate;
using mlir::kiln::getProduct;
using tile::Values;

/// The elements of a tile that a thread has, whose loads are in flight together.
static constexpr int64_t ofThread = 4;
/// The shortest line along the innermost axis that several threads share.
static constexpr int64_t leastShared = 16;

namespace {

/// A cumulative sum that a stage's op reads element by element, or the stage's op itself.
struct StageSum {
  CumulativeSum sum;
  SmallVector<unsigned> loops; // as those of a StageReduction
};

/// The cumulative sums of a stage, which have one axis.
struct Lines {
  SmallVector<StageSum> sums;
  unsigned axis = 0;          // loop of the stage's op
  SmallVector<unsigned> rest; // its other parallel loops, in the order of the first result's dimensions
  bool isInnermost = false;   // the axis is contiguous in the first result
  AffineExpr length, count;   // elements of a line, number of lines
  int64_t mostLength = 0, mostCount = 0;

  bool isReverse() const { return sums.front().sum.isReverse; }
};

/// Returns nullopt unless all reductions of the stage are cumulative sums along one axis in one direction.
std::optional<Lines> findLines(const StageContext &context) {
  Lines lines;
  const auto reductions = findReductions(context);
  if (!reductions || reductions->empty())
    return std::nullopt;
  for (const StageReduction &reduction : *reductions) {
    std::optional<CumulativeSum> sum = asCumulativeSum(reduction.op);
    if (!sum || !Combiner::of(reduction.op))
      return std::nullopt;
    const unsigned axis = reduction.loops[sum->axis];
    if (!lines.sums.empty() && (axis != lines.axis || sum->isReverse != lines.isReverse()))
      return std::nullopt;
    lines.axis = axis;
    lines.sums.push_back({*sum, reduction.loops});
  }
  linalg::GenericOp op = context.stage.op;
  const SmallVector<AffineExpr> extents = loopExtents(op);
  const unsigned first = cast<OpResult>(context.stage.stores.front().value).getResultNumber();
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(first));
  SmallVector<AffineExpr> others;
  for (unsigned i = 0; i < map.getNumResults(); ++i) {
    const unsigned loop = map.getDimPosition(i);
    if (extents[loop] != getAffineConstantExpr(1, op->getContext()))
      lines.isInnermost = loop == lines.axis;
    if (loop != lines.axis) {
      lines.rest.push_back(loop);
      others.push_back(extents[loop]);
    }
  }
  lines.length = extents[lines.axis];
  lines.count = getProduct(others, op->getContext());
  lines.mostLength = largestValue(lines.length, context.kernel);
  lines.mostCount = largestValue(lines.count, context.kernel);
  const int64_t most = std::numeric_limits<int32_t>::max() / 2;
  return lines.mostLength <= most && lines.mostCount <= most ? std::optional(std::move(lines)) : std::nullopt;
}

/// The threads of a block: `threads` for each of `lines`.
struct LineShape {
  int64_t threads, lines;
  bool isOfWarps; // segments belong to warps, not to threads

  int64_t segments() const { return isOfWarps ? threads / lanesOfWarp : threads; }
  int64_t segmentLength() const { return isOfWarps ? lanesOfWarp * ofThread : ofThread; }
};

/// Builds the function of a stage.
class RunningSumBuilder {
public:
  RunningSumBuilder(tile::Builder &b, const StageContext &context, const Lines &lines, const LineShape &shape,
                    ElementEmitter &emitter);

  LogicalResult build();

private:
  /// The sums of a thread's elements from the start of its segment on, and of the whole segment; [element][sum], [sum].
  struct Segment {
    SmallVector<Values> sums;
    Values total;
  };

  Values loopsOf(Value position) const;
  Values load(ArrayRef<Value> loops);
  Values add(const Values &x, const Values &y);
  std::pair<Values, Values> addLanes(Values values);
  Segment addSegment(ArrayRef<Values> elements);
  std::pair<Values, Values> addSegments(Value tile, Values before, const Values &total);
  Values buildTile(Value tile, Values before);
  LogicalResult store(const Values &loops, const Values &sums);

  tile::Builder &b;
  const StageContext &context;
  const Lines &lines;
  LineShape shape;
  ElementEmitter &emitter;
  SmallVector<Combiner> combiners; // of each sum
  Value segment, lane, column;     // the thread's segment, its lane there, the number of its line in the block
  Value isThere;                   // whether the line exists
  Value length;
  Values line;   // coordinates of the line
  Values shared; // totals of segments, two halves
  LogicalResult result = success();
};

RunningSumBuilder::RunningSumBuilder(tile::Builder &b, const StageContext &context, const Lines &lines,
                                     const LineShape &shape, ElementEmitter &emitter)
    : b(b), context(context), lines(lines), shape(shape), emitter(emitter) {
  Value thread = b.threadId();
  for (const StageSum &sum : lines.sums) {
    combiners.push_back(*Combiner::of(sum.sum.op));
    if (shape.segments() > 1)
      shared.push_back(tile::addShared(b, deviceType(b, sum.sum.term.getType()), 2 * shape.segments() * shape.lines));
  }
  if (shape.isOfWarps) { // a block has several lines only if each is a warp's
    Value warp = b.div(thread, b.integer(lanesOfWarp));
    lane = b.rem(thread, b.integer(lanesOfWarp));
    column = shape.lines > 1 ? warp : b.integer(0);
    segment = shape.lines > 1 ? b.integer(0) : warp;
  } else {
    column = b.rem(thread, b.integer(shape.lines));
    segment = b.div(thread, b.integer(shape.lines));
  }
  length = emitter.extent(lines.length);
}

/// Returns the loops of the stage's op.
Values RunningSumBuilder::loopsOf(Value position) const {
  linalg::GenericOp op = context.stage.op;
  Values loops(op.getNumLoops());
  for (auto [loop, coordinate] : llvm::zip_equal(lines.rest, line))
    loops[loop] = coordinate;
  loops[lines.axis] = position;
  return loops;
}

/// Returns the term of each sum.
Values RunningSumBuilder::load(ArrayRef<Value> loops) {
  Values terms;
  for (const auto &[sum, at] : lines.sums) {
    Values own;
    for (unsigned loop : ArrayRef(at).drop_back())
      own.push_back(loops[loop]);
    own.push_back(loops[lines.axis]);
    terms.push_back(emitter.evaluate(sum.op, sum.term, own));
    if (!terms.back())
      return {};
  }
  return terms;
}

Values RunningSumBuilder::add(const Values &x, const Values &y) {
  Values result;
  for (auto [combiner, left, right] : llvm::zip_equal(combiners, x, y))
    llvm::append_range(result, combiner.combine(b, left, right));
  return result;
}

/// Returns the sums up to the lane and those of all lanes: lanes exchange sums of pairs, of pairs of pairs, and so on.
std::pair<Values, Values> RunningSumBuilder::addLanes(Values values) {
  Values all = values;
  for (int64_t bit = 1; bit < lanesOfWarp; bit *= 2) {
    Values others;
    for (Value value : all)
      others.push_back(b.shuffleXor(value, int32_t(bit)));
    Value isAfter = b.compare(CmpIPredicate::ne, b.both(lane, b.integer(bit)), b.integer(0));
    for (auto [value, next] : llvm::zip_equal(values, add(others, values)))
      value = b.select(isAfter, next, value);
    all = add(all, others);
  }
  return {values, all};
}

RunningSumBuilder::Segment RunningSumBuilder::addSegment(ArrayRef<Values> elements) {
  Segment result;
  for (const Values &element : elements) {
    auto [sums, all] = shape.isOfWarps ? addLanes(element) : std::pair(element, element);
    const bool isFirst = result.sums.empty();
    result.sums.push_back(isFirst ? sums : add(result.total, sums));
    result.total = isFirst ? all : shape.isOfWarps ? add(result.total, all) : result.sums.back();
  }
  return result;
}

/// Returns the sums before the thread's segment and after the tile. Shared memory is double-buffered: a thread that
/// writes a half again has met all others at a barrier since they read it.
std::pair<Values, Values> RunningSumBuilder::addSegments(Value tile, Values before, const Values &total) {
  const int64_t segments = shape.segments();
  if (segments == 1)
    return {before, add(before, total)};
  Value half = b.mul(b.rem(tile, b.integer(2)), b.integer(segments * shape.lines));
  auto place = [&](Value of) { return b.add(half, b.add(b.mul(of, b.integer(shape.lines)), column)); };
  auto write = [&] {
    for (auto [value, address] : llvm::zip_equal(total, shared))
      b.store(value, address, place(segment));
  };
  if (shape.isOfWarps)
    b.ifThen(b.compare(CmpIPredicate::eq, lane, b.integer(0)), write);
  else
    write();
  tile::barrier(b);
  Values own = before;
  for (int64_t i = 0; i < segments; ++i) {
    Values next;
    for (auto [value, address] : llvm::zip_equal(total, shared))
      next.push_back(b.load(value.getType(), address, place(b.integer(i))));
    before = add(before, next);
    Value isBefore = b.isBelow(b.integer(i), segment);
    for (auto [value, later] : llvm::zip_equal(own, before))
      value = b.select(isBefore, later, value);
  }
  return {own, before};
}

/// Evaluates the stage's op at an element whose sums are known, and stores it.
LogicalResult RunningSumBuilder::store(const Values &loops, const Values &sums) {
  linalg::GenericOp op = context.stage.op;
  emitter.computedReduction = [&](linalg::GenericOp reduction, ArrayRef<Value>) {
    for (auto [sum, value] : llvm::zip_equal(lines.sums, sums))
      if (sum.sum.op == reduction)
        return Values{value};
    return Values();
  };
  Values results = emitter.evaluate(op, loops);
  emitter.computedReduction = nullptr;
  if (results.empty())
    return failure();
  for (const Store &store : context.stage.stores) {
    const unsigned number = cast<OpResult>(store.value).getResultNumber();
    emitter.store(store, results[number], emitter.written(op, number, loops));
  }
  return success();
}

/// Stores the tile's elements and returns the sums up to its end, given those before it.
Values RunningSumBuilder::buildTile(Value tile, Values before) {
  const int64_t segments = shape.segments(), ofSegment = shape.segmentLength();
  Value first = b.add(b.mul(tile, b.integer(segments * ofSegment)), b.mul(segment, b.integer(ofSegment)));
  if (shape.isOfWarps)
    first = b.add(first, lane);
  Value last = b.sub(length, b.integer(1));
  Values numbers;
  SmallVector<Values> loops, elements;
  for (int64_t i = 0; i < ofThread; ++i) {
    numbers.push_back(b.add(first, b.integer(shape.isOfWarps ? i * lanesOfWarp : i)));
    Value position = b.createOrFold<arith::MinSIOp>(numbers.back(), last); // nothing reads sums after the last one
    loops.push_back(loopsOf(lines.isReverse() ? b.sub(last, position) : position));
    elements.push_back(load(loops.back()));
    if (elements.back().empty()) {
      result = failure();
      return before;
    }
  }
  const bool isSerial = !shape.isOfWarps && segments == 1;
  if (isSerial)
    elements.front() = add(before, elements.front());
  Segment sums = addSegment(elements);
  auto [own, after] = isSerial ? std::pair(before, sums.total) : addSegments(tile, before, sums.total);
  for (int64_t i = 0; i < ofThread; ++i) {
    Values values = isSerial ? sums.sums[i] : add(own, sums.sums[i]);
    b.ifThen(b.both(isThere, b.isBelow(numbers[i], length)), [&] {
      if (failed(store(loops[i], values)))
        result = failure();
    });
  }
  return after;
}

LogicalResult RunningSumBuilder::build() {
  Value count = emitter.extent(lines.count);
  Value number = b.add(b.mul(b.blockId(), b.integer(shape.lines)), column);
  isThere = b.isBelow(number, count);
  number = b.createOrFold<arith::MinSIOp>(number, b.sub(count, b.integer(1))); // so that all threads reach barriers
  line.resize(lines.rest.size());
  const SmallVector<AffineExpr> extents = loopExtents(context.stage.op);
  for (size_t i = line.size(); i-- > 0;) {
    Value size = i == 0 ? Value() : emitter.extent(extents[lines.rest[i]]);
    line[i] = i == 0 ? number : b.rem(number, size);
    number = i == 0 ? number : b.div(number, size);
  }
  Values start;
  for (StageSum sum : lines.sums)
    start.push_back(emitter.read(sum.sum.op.getDpsInits()[0], {}));
  const int64_t ofTile = shape.segments() * shape.segmentLength();
  Value tiles = b.div(b.add(length, b.integer(ofTile - 1)), b.integer(ofTile));
  b.loop(tiles, start, [&](Value tile, ValueRange before) { return buildTile(tile, Values(before)); });
  return result;
}

class RunningSum : public StageStrategy {
public:
  RunningSum(const StageContext &context, Lines lines) : context(context), lines(std::move(lines)) {}

  StringRef name() const override { return "running_sum"; }
  SearchSpace searchSpace() const override;
  std::optional<BlockNeeds> needs(const ScheduleConfig &config) const override {
    const LineShape shape = shapeOf(config);
    return BlockNeeds{shape.threads * shape.lines, 48, 0, 0};
  }
  LogicalResult build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const override;

private:
  /// Whether neighbouring threads have neighbouring elements of a line, not neighbouring lines.
  bool isAlong() const { return lines.isInnermost && lines.mostLength >= leastShared; }
  LineShape shapeOf(const ScheduleConfig &config) const {
    return {config.at("line_threads"), config.at("lines_per_block"), isAlong()};
  }

  StageContext context;
  Lines lines;
};

/// With few lines, each one gets more threads. With many, a thread has a line, where these are not contiguous.
SearchSpace RunningSum::searchSpace() const {
  const int64_t length = lines.mostLength, count = lines.mostCount;
  SearchSpace space;
  if (isAlong()) {
    const int64_t perThread = count < 512 ? 4 : 16;
    space.push_back(makeParameter("line_threads", {32, 64, 128, 256, 512, 1024},
                                  int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(length, perThread)))));
    const bool isWarp = space.back().defaultValue == 32;
    space.push_back(makeParameter("lines_per_block", {1, 2, 4, 8}, isWarp && count >= 512 ? 4 : 1));
    space.rules.push_back({"lines_per_block = 1 or line_threads = 32", [](const ScheduleConfig &config) {
                             return config.at("lines_per_block") == 1 || config.at("line_threads") == 32;
                           }});
    return space;
  }
  const bool isSerial = length < leastShared || count >= 1 << 15;
  space.push_back(makeParameter("line_threads", {1, 2, 4, 8, 16, 32}, isSerial ? 1 : count < 512 ? 32 : 8));
  space.push_back(makeParameter("lines_per_block", {1, 2, 4, 8, 16, 32, 64, 128, 256},
                                std::min<int64_t>(isSerial ? 128 : 32, int64_t(llvm::PowerOf2Ceil(count)))));
  space.rules.push_back({"line_threads * lines_per_block <= 1024", [](const ScheduleConfig &config) {
                           return config.at("line_threads") * config.at("lines_per_block") <= 1024;
                         }});
  return space;
}

LogicalResult RunningSum::build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const {
  const LineShape shape = shapeOf(config);
  const std::string name = "running_sum_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = shape.threads * shape.lines};
  b.beginKernel(name, launch);
  b.launchDependents();
  ElementEmitter emitter(b, context.placement, context.kernel);
  if (failed(RunningSumBuilder(b, context, lines, shape, emitter).build()))
    return failure();
  b.endKernel();
  plan.launches.push_back({unsigned(plan.functions.size()), lines.count.ceilDiv(shape.lines), emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  return success();
}

} // namespace

std::unique_ptr<StageStrategy> matchRunningSum(const StageContext &context) {
  std::optional<Lines> lines = findLines(context);
  return lines ? std::make_unique<RunningSum>(context, std::move(*lines)) : nullptr;
}

} // namespace kiln::cuda
