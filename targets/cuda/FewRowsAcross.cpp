// SPDX-License-Identifier: Apache-2.0
//
// 1. A block for a few columns of a batch: as many neighbouring lanes have one each. Teams of so many lanes take every
//    so manieth step of the depth, so that there are enough of them for what memory gives.
// 2. Each thread adds what it takes in order of the depth. The teams' sums go to shared memory.
// 3. A thread adds those of a row and a column, in order of the teams, and finishes that. It has read all that it
//    stores over before.
#include "targets/cuda/FewRowsAcross.h"

#include "compiler/schedule/SearchSpace.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr int64_t warpLanes = 32, sectorBytes = 32; // the least that memory is read by

/// `columns` of a block; the steps of the depth that a thread has on their way.
struct AcrossShape {
  int64_t columns, warps, turns;

  int64_t threads() const { return warps * warpLanes; }
  int64_t teams() const { return threads() / columns; }
};

AcrossShape shapeOf(const SchedulePoint &point) {
  return {point.at("lane_columns"), point.at("warps"), point.at("turns")};
}

class AcrossBuilder {
public:
  AcrossBuilder(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
                const AcrossShape &shape)
      : b(b), reader(reader), context(context), contraction(contraction), rows(fewRowsOf(contraction)), shape(shape) {}

  LogicalResult run();

private:
  void begin();
  Values at(Value row, Value column, Value depth);
  Values addTurn(Value depth, Values sums);
  Values addAll();
  LogicalResult finish(Value row);

  tile::Builder &b;
  Reader &reader;
  const StepContext &context;
  const Contraction &contraction;
  int64_t rows;
  AcrossShape shape;
  Value lane, team, column, rowCount, columnCount, depthCount; // lane: of the team
  Values loops;                                                // with the numbers of the batch
  bool broken = false;
};

void AcrossBuilder::begin() {
  Value thread = b.threadId(), block = b.blockId();
  lane = b.rem(thread, b.integer(shape.columns));
  team = b.div(thread, b.integer(shape.columns));
  rowCount = reader.extent(extentOf(contraction, contraction.rows));
  columnCount = reader.extent(extentOf(contraction, contraction.columns));
  depthCount = reader.extent(extentOf(contraction, contraction.depth));
  Value across = b.div(b.add(columnCount, b.integer(shape.columns - 1)), b.integer(shape.columns));
  linalg::GenericOp op = contraction.op;
  loops.resize(op.getNumLoops());
  splitIndex(b, reader, contraction, contraction.batch, b.div(block, across), loops);
  column = b.add(b.mul(b.rem(block, across), b.integer(shape.columns)), lane);
}

/// Instead of what is beyond the ends the last row and column, whose sums nobody stores.
Values AcrossBuilder::at(Value row, Value column, Value depth) {
  Values result = loops;
  splitIndex(b, reader, contraction, contraction.rows, b.clamp(row, rowCount), result);
  splitIndex(b, reader, contraction, contraction.columns, b.clamp(column, columnCount), result);
  if (depth)
    splitIndex(b, reader, contraction, contraction.depth, depth, result);
  return result;
}

/// A step of the depth; beyond its end zeros.
Values AcrossBuilder::addTurn(Value depth, Values sums) {
  Value isInside = b.isBelow(depth, depthCount), zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  depth = b.select(isInside, depth, b.integer(0));
  auto read = [&](unsigned input, Value row) {
    Value value = readInput(b, reader, contraction, input, at(row, column, depth));
    broken |= !value;
    return value ? b.select(isInside, value, zero) : zero;
  };
  Value weight = read(contraction.b, b.integer(0));
  for (int64_t row = 0; row < rows; ++row)
    sums[row] = math::FmaOp::create(b, read(contraction.a, b.integer(row)), weight, sums[row]);
  return sums;
}

Values AcrossBuilder::addAll() {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  const int64_t ofStep = shape.teams() * shape.turns;
  Value steps = b.div(b.add(depthCount, b.integer(ofStep - 1)), b.integer(ofStep));
  return b.loop(steps, Values(rows, zero), [&](Value step, ValueRange values) {
    Values sums(values);
    Value first = b.add(b.mul(step, b.integer(ofStep)), team);
    for (int64_t turn = 0; turn < shape.turns; ++turn)
      sums = addTurn(b.add(first, b.integer(turn * shape.teams())), sums);
    return sums;
  });
}

/// [row][team][lane] in shared memory, so that lanes are in different banks.
LogicalResult AcrossBuilder::finish(Value row) {
  Value from = tile::advance(b, tile::sharedMemory(b), b.add(b.mul(row, b.integer(shape.threads())), lane));
  Value sum = tile::loadOne(b, from);
  for (int64_t i = 1; i < shape.teams(); ++i)
    sum = b.createOrFold<arith::AddFOp>(sum, tile::loadOne(b, tile::advance(b, from, i * shape.columns)));
  Values place = at(row, column, {});
  Values results = finishSum(reader, context, contraction, place, sum);
  if (!results.empty())
    storeResults(reader, context, contraction, place, results);
  return success(!results.empty());
}

LogicalResult AcrossBuilder::run() {
  begin();
  Values sums = addAll();
  if (broken)
    return failure();
  Value to = tile::advance(b, tile::sharedMemory(b), b.threadId());
  for (auto [row, sum] : llvm::enumerate(sums))
    tile::storeOne(b, sum, tile::advance(b, to, int64_t(row) * shape.threads()));
  tile::barrier(b);
  LogicalResult result = success();
  b.loop(b.integer(llvm::divideCeil(rows, shape.teams())), {}, [&](Value turn, ValueRange) {
    Value row = b.add(b.mul(turn, b.integer(shape.teams())), team);
    b.ifThen(b.both(b.isBelow(row, rowCount), b.isBelow(column, columnCount)), [&] { result = finish(row); });
    return Values();
  });
  return result;
}

} // namespace

/// As many columns as lanes, as long as there are two blocks for each multiprocessor; fewer, but no less than memory is
/// read by, where there are not.
static int64_t presetColumns(const Contraction &contraction) {
  linalg::GenericOp op = contraction.op;
  const int64_t bytes = getElementTypeOrSelf(op->getOperand(contraction.b)).getIntOrFloatBitWidth() / 8;
  int64_t columns = warpLanes;
  while (columns * bytes > sectorBytes &&
         largestExtent(contraction, contraction.batch) *
                 llvm::divideCeil(largestExtent(contraction, contraction.columns), columns) <
             2 * leastMultiprocessors)
    columns /= 2;
  return columns;
}

SearchSpace fewRowsAcrossSpace(const Contraction &contraction) {
  SearchSpace space;
  space.push_back(makeParameter("lane_columns", {4, 8, 16, 32}, presetColumns(contraction)));
  space.push_back({"turns", {1, 2, 4, 8}, 4});
  space.push_back({"warps", {4, 8, 16}, 16});
  return space;
}

LogicalResult buildFewRowsAcross(tile::Builder &b, const StepContext &context, const Contraction &contraction,
                                 const SchedulePoint &point, DevicePlan &plan) {
  const AcrossShape shape = shapeOf(point);
  const std::string name = "step_" + std::to_string(plan.functions.size());
  b.beginKernel(name, shape.threads());
  Reader reader(b, context.placement, context.kernel);
  if (failed(AcrossBuilder(b, reader, context, contraction, shape).run()))
    return failure();
  b.endKernel();
  AffineExpr blocks =
      extentOf(contraction, contraction.batch) * extentOf(contraction, contraction.columns).ceilDiv(shape.columns);
  plan.launches.push_back({unsigned(plan.functions.size()), blocks, reader.parameters});
  plan.functions.push_back({name, uint32_t(shape.threads()), uint32_t(4 * fewRowsOf(contraction) * shape.threads())});
  return success();
}

} // namespace kiln::cuda
