// SPDX-License-Identifier: Apache-2.0
// 1. Each block computes a few columns of a batch. A lane has as many neighbouring columns as 16 bytes hold, where
//    extents allow, and loads them as one vector if the address is aligned, which is checked once at run time; sums
//    are the same either way. A thread group consists of the lanes that have all columns; thread groups take the K
//    indices in turn, so that there are enough of them to use the memory bandwidth.
// 2. Each thread accumulates in order of K, with the loads of several K indices in flight. The sums of the thread
//    groups of a warp are added in a tree, always the same one, and go to shared memory.
// 3. A thread adds the warps' sums of a row and a column, in their order, and finishes the result. It reads everything
//    that it overwrites before it stores.
#include "targets/cuda/gemm/SkinnyGemmColumns.h"

#include "compiler/schedule/SearchSpace.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "targets/cuda/gemm/Prefetch.h"
#include "targets/cuda/ptx/ScalarOps.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr int64_t warpLanes = 32, leastBytes = 64; // leastBytes: neighbouring columns, the unit in which memory is read

/// A block has `columns` columns, a lane has `width` of them; a thread has the loads of `unroll` K indices in flight.
struct SkinnyGemmColumnsShape {
  int64_t columns, width, warps, unroll;

  int64_t threads() const { return warps * warpLanes; }
  int64_t lanes() const { return columns / width; } // per thread group
  int64_t threadGroups() const { return threads() / lanes(); }
};

SkinnyGemmColumnsShape shapeOf(const ContractionInput &weight, const ScheduleConfig &config) {
  const int64_t columns = config.at("lane_columns");
  return {columns, std::min(weight.isPlain ? weight.together : 1, columns), config.at("warps"), config.at("unroll")};
}

class SkinnyGemmColumnsBuilder {
public:
  SkinnyGemmColumnsBuilder(tile::Builder &b, ElementEmitter &emitter, const StageContext &context,
                           const Contraction &contraction, const ContractionInput &weight,
                           const SkinnyGemmColumnsShape &shape, const NormPrologue *norm)
      : b(b), emitter(emitter), context(context), contraction(contraction), weight(weight),
        rows(skinnyRowsOf(contraction)), shape(shape) {
    if (norm)
      row.emplace(b, *norm);
  }

  LogicalResult run();

private:
  void begin();
  Value isAligned();
  Values at(Value row, Value column, Value kIndex);
  Values readWeight(bool isAligned, Value kIndex);
  Value isInside(Value kIndex);
  SmallVector<Values> readWeights(bool isAligned, Value first);
  Values addSteps(ArrayRef<Values> weights, Value first, Values sums);
  Values addAll(bool isAligned);
  void putWarp(Values sums);
  LogicalResult finish(Value row, Value columnOfBlock);

  tile::Builder &b;
  ElementEmitter &emitter;
  const StageContext &context;
  const Contraction &contraction;
  const ContractionInput &weight;
  std::optional<SharedRow> row;
  int64_t rows;
  SkinnyGemmColumnsShape shape;
  Value thread, threadGroup, firstColumn, laneColumn, rowCount, columnCount, kExtent; // first column of block, of lane
  Values loops;                                                                       // with the batch indices
  bool broken = false;
};

void SkinnyGemmColumnsBuilder::begin() {
  Value block = b.blockId();
  thread = b.threadId();
  threadGroup = b.div(thread, b.integer(shape.lanes()));
  rowCount = emitter.extent(extentOf(contraction, contraction.rows));
  columnCount = emitter.extent(extentOf(contraction, contraction.columns));
  kExtent = emitter.extent(extentOf(contraction, contraction.reduction));
  Value across = b.div(b.add(columnCount, b.integer(shape.columns - 1)), b.integer(shape.columns));
  linalg::GenericOp op = contraction.op;
  loops.resize(op.getNumLoops());
  splitIndex(b, emitter, contraction, contraction.batch, b.div(block, across), loops);
  firstColumn = b.mul(b.rem(block, across), b.integer(shape.columns));
  laneColumn = b.add(firstColumn, b.mul(b.rem(thread, b.integer(shape.lanes())), b.integer(shape.width)));
}

/// Returns null if the weight is always aligned, or needs no alignment.
Value SkinnyGemmColumnsBuilder::isAligned() {
  if (shape.width == 1 || weight.isSureAligned)
    return {};
  return tile::isMultiple(b, emitter.address(contraction.op, weight.number), shape.width * weight.bytes());
}

/// The last row and column replace those beyond the ends, whose sums are not stored.
Values SkinnyGemmColumnsBuilder::at(Value row, Value column, Value kIndex) {
  Values result = loops;
  splitIndex(b, emitter, contraction, contraction.rows, b.clamp(row, rowCount), result);
  splitIndex(b, emitter, contraction, contraction.columns, b.clamp(column, columnCount), result);
  if (kIndex)
    splitIndex(b, emitter, contraction, contraction.reduction, kIndex, result);
  return result;
}

/// Reads the lane's columns as f32. If they are loaded as a vector, the vector width divides the number of all
/// columns.
Values SkinnyGemmColumnsBuilder::readWeight(bool isAligned, Value kIndex) {
  if (isAligned && shape.width > 1) {
    Type element = deviceType(b, weight.element);
    Value isThere = b.isBelow(laneColumn, columnCount);
    Values first = at(b.integer(0), b.select(isThere, laneColumn, b.integer(0)), kIndex);
    Value from = b.addressOf(element, emitter.address(contraction.op, weight.number),
                             emitter.offset(contraction.op, weight.number, first));
    return tile::loadFloats(b, element, shape.width, from);
  }
  Values values;
  for (int64_t i = 0; i < shape.width; ++i) {
    values.push_back(
        readInput(b, emitter, contraction, contraction.b, at(b.integer(0), b.add(laneColumn, b.integer(i)), kIndex)));
    broken |= !values.back();
  }
  return values;
}

/// Returns whether K has that index.
Value SkinnyGemmColumnsBuilder::isInside(Value kIndex) {
  auto extent = dyn_cast<AffineConstantExpr>(extentOf(contraction, contraction.reduction));
  const bool isWhole = extent && extent.getValue() % (shape.threadGroups() * shape.unroll) == 0;
  return isWhole ? b.integer(b.getI1Type(), 1) : b.isBelow(kIndex, kExtent);
}

/// Reads the weights of `unroll` K indices from `first` on; zeros beyond the end.
SmallVector<Values> SkinnyGemmColumnsBuilder::readWeights(bool isAligned, Value first) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  SmallVector<Values> weights;
  for (int64_t unrolled = 0; unrolled < shape.unroll && !broken; ++unrolled) {
    Value kIndex = b.add(first, b.integer(unrolled * shape.threadGroups())), inside = isInside(kIndex);
    weights.push_back(readWeight(isAligned, b.select(inside, kIndex, b.integer(0))));
    for (Value &value : weights.back())
      value = broken ? zero : b.select(inside, value, zero);
  }
  return weights;
}

/// Accumulates the same K indices of the rows, all of which are loaded first.
Values SkinnyGemmColumnsBuilder::addSteps(ArrayRef<Values> weights, Value first, Values sums) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  SmallVector<Values> inputs;
  for (int64_t unrolled = 0; unrolled < shape.unroll && !broken; ++unrolled) {
    Value kIndex = b.add(first, b.integer(unrolled * shape.threadGroups())), inside = isInside(kIndex);
    kIndex = b.select(inside, kIndex, b.integer(0));
    inputs.emplace_back();
    for (int64_t row = 0; row < rows && !broken; ++row) {
      Value value = this->row
                        ? this->row->read(kIndex, 1).front()
                        : readInput(b, emitter, contraction, contraction.a, at(b.integer(row), laneColumn, kIndex));
      broken |= !value;
      inputs.back().push_back(value ? b.select(inside, value, zero) : zero);
    }
  }
  for (int64_t unrolled = 0; unrolled < shape.unroll && !broken; ++unrolled)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < shape.width; ++column) {
        Value &sum = sums[row * shape.width + column];
        sum = math::FmaOp::create(b, inputs[unrolled][row], weights[unrolled][column], sum);
      }
  return sums;
}

/// The weights of the first K indices are read before the wait for earlier kernels, if that is possible.
Values SkinnyGemmColumnsBuilder::addAll(bool isAligned) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  const int64_t ofStep = shape.threadGroups() * shape.unroll,
                prefetched = isPrefetchable(context, contraction, weight) ? 1 : 0;
  Values sums(rows * shape.width, zero);
  SmallVector<Values> first;
  if (prefetched)
    first = readWeights(isAligned, threadGroup);
  b.waitForDependencies();
  if (row)
    broken |= failed(row->compute(emitter, shape.threads()));
  if (prefetched)
    sums = addSteps(first, threadGroup, std::move(sums));
  return b.loop(iterationsAfter(b, kExtent, ofStep, prefetched), sums, [&](Value step, ValueRange values) {
    Value start = b.add(b.mul(b.add(step, b.integer(prefetched)), b.integer(ofStep)), threadGroup);
    return addSteps(readWeights(isAligned, start), start, Values(values));
  });
}

/// Writes the sums of a warp's thread groups to shared memory, as [row][warp][column of the block], by the warp's
/// first group.
void SkinnyGemmColumnsBuilder::putWarp(Values sums) {
  for (Value &sum : sums)
    for (int64_t bits = shape.lanes(); bits < warpLanes; bits *= 2)
      sum = b.createOrFold<arith::AddFOp>(sum, b.shuffleXor(sum, int32_t(bits)));
  Value warp = b.div(thread, b.integer(warpLanes)), lane = b.rem(thread, b.integer(warpLanes));
  b.ifThen(b.isBelow(lane, b.integer(shape.lanes())), [&] {
    Value column = b.add(b.mul(warp, b.integer(shape.columns)), b.mul(lane, b.integer(shape.width)));
    Value to = tile::advance(b, tile::sharedMemory(b), column);
    for (auto [i, sum] : llvm::enumerate(sums))
      tile::storeOne(
          b, sum,
          tile::advance(b, to, int64_t(i) / shape.width * shape.warps * shape.columns + int64_t(i) % shape.width));
  });
}

LogicalResult SkinnyGemmColumnsBuilder::finish(Value row, Value columnOfBlock) {
  Value from =
      tile::advance(b, tile::sharedMemory(b), b.add(b.mul(row, b.integer(shape.warps * shape.columns)), columnOfBlock));
  Value sum = tile::loadOne(b, from);
  for (int64_t warp = 1; warp < shape.warps; ++warp)
    sum = b.createOrFold<arith::AddFOp>(sum, tile::loadOne(b, tile::advance(b, from, warp * shape.columns)));
  Values place = at(row, b.add(firstColumn, columnOfBlock), {});
  Values results = finishSum(emitter, context, contraction, place, sum);
  if (!results.empty())
    storeResults(emitter, context, contraction, place, results);
  return success(!results.empty());
}

LogicalResult SkinnyGemmColumnsBuilder::run() {
  begin();
  prefetchWeight(b, emitter, contraction, weight, shape.columns, shape.threads(), shape.threadGroups() * shape.unroll);
  prefetchEpilogue(b, emitter, context, contraction, shape.columns);
  Value aligned = isAligned();
  Values sums;
  if (aligned) {
    SmallVector<Type> ofSums(rows * shape.width, b.getF32Type());
    sums = b.ifElse(aligned, ofSums, [&] { return addAll(true); }, [&] { return addAll(false); });
  } else {
    sums = addAll(true);
  }
  if (broken)
    return failure();
  b.launchDependents();
  putWarp(std::move(sums));
  tile::barrier(b);
  LogicalResult result = success();
  const int64_t count = rows * shape.columns;
  b.loop(b.integer(llvm::divideCeil(count, shape.threads())), {}, [&](Value iteration, ValueRange) {
    Value number = b.add(b.mul(iteration, b.integer(shape.threads())), thread);
    Value row = b.div(number, b.integer(shape.columns)), column = b.rem(number, b.integer(shape.columns));
    Value isThere = b.both(b.isBelow(row, rowCount), b.isBelow(b.add(firstColumn, column), columnCount));
    b.ifThen(isThere, [&] { result = finish(row, column); });
    return Values();
  });
  return result;
}

/// As many columns as lanes, while there are two blocks for each multiprocessor; otherwise fewer, but no less than the
/// unit in which memory is read.
int64_t defaultColumns(const Contraction &contraction, const ContractionInput &weight) {
  int64_t columns = warpLanes;
  while (columns * weight.bytes() > leastBytes &&
         largestExtent(contraction, contraction.batch) *
                 llvm::divideCeil(largestExtent(contraction, contraction.columns), columns) <
             2 * leastMultiprocessors)
    columns /= 2;
  return columns;
}

/// Estimates registers: for each K index in flight the weights of all columns and the rows; and the sums.
int64_t registersOf(const Contraction &contraction, const SkinnyGemmColumnsShape &shape) {
  const int64_t rows = skinnyRowsOf(contraction);
  return 32 + rows * shape.width + shape.unroll * (shape.width + rows);
}

/// As many K indices as there are, so that memory latency is paid once, or a divisor of their number, if the registers
/// of half of the threads hold them.
int64_t defaultUnroll(const Contraction &contraction, SkinnyGemmColumnsShape shape) {
  constexpr int64_t most = 8, mostRegisters = 64;
  const auto all = int64_t(llvm::divideCeil(largestExtent(contraction, contraction.reduction), shape.threadGroups()));
  int64_t best = 1;
  for (shape.unroll = 2; shape.unroll <= std::min(most, all); ++shape.unroll)
    if (registersOf(contraction, shape) <= mostRegisters && (all % shape.unroll == 0 || all % best != 0))
      best = shape.unroll;
  return best;
}

} // namespace

SearchSpace skinnyGemmColumnsSpace(const Contraction &contraction, const ContractionInput &weight) {
  constexpr int64_t warps = 16;
  const int64_t columns = defaultColumns(contraction, weight);
  SearchSpace space;
  space.push_back(makeParameter("lane_columns", {4, 8, 16, 32}, columns));
  const SkinnyGemmColumnsShape one = shapeOf(weight, {{"lane_columns", columns}, {"warps", warps}, {"unroll", 1}});
  space.push_back(makeParameter("unroll", {1, 2, 3, 4, 5, 6, 7, 8}, defaultUnroll(contraction, one)));
  space.push_back({"warps", {4, 8, 16}, warps});
  return space;
}

BlockNeeds skinnyGemmColumnsNeeds(const Contraction &contraction, const ContractionInput &weight,
                                  const ScheduleConfig &config) {
  const SkinnyGemmColumnsShape shape = shapeOf(weight, config);
  return {shape.threads(), registersOf(contraction, shape), 4 * skinnyRowsOf(contraction) * shape.warps * shape.columns,
          0};
}

LogicalResult buildSkinnyGemmColumns(tile::Builder &b, const RowProduct &product, const NormPrologue *norm,
                                     const ContractionInput &weight, const ScheduleConfig &config, LaunchPlan &plan) {
  const auto &[context, contraction] = product;
  const SkinnyGemmColumnsShape shape = shapeOf(weight, config);
  const std::string name = "step_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = shape.threads(), .waitsAtOnce = false};
  b.beginKernel(name, launch);
  ElementEmitter emitter(b, context.placement, context.kernel);
  if (norm)
    prefetchSmallWeights(b, emitter, context.kernel, launch.threads);
  if (failed(SkinnyGemmColumnsBuilder(b, emitter, context, contraction, weight, shape, norm).run()))
    return failure();
  b.endKernel();
  AffineExpr blocks =
      extentOf(contraction, contraction.batch) * extentOf(contraction, contraction.columns).ceilDiv(shape.columns);
  plan.launches.push_back({unsigned(plan.functions.size()), blocks, emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch, skinnyGemmColumnsNeeds(contraction, weight, config).sharedBytes));
  return success();
}

} // namespace kiln::cuda
