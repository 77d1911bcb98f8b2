// SPDX-License-Identifier: Apache-2.0
//
// 1. A block for 32 columns of a batch, one a lane. Its warps take every so manieth step of the depth, so that there
//    are enough of them for what memory gives.
// 2. Each thread adds what it takes in order of the depth. The warps' sums go to shared memory.
// 3. A thread adds those of a row and a column, in order of the warps, and finishes that. It has read all that it
//    stores over before.
#include "targets/cuda/FewRowsAcross.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

constexpr int64_t warpLanes = 32;

class AcrossBuilder {
public:
  AcrossBuilder(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
                int64_t warps, int64_t turns)
      : b(b), reader(reader), context(context), contraction(contraction), rows(fewRowsOf(contraction)), warps(warps),
        turns(turns) {}

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
  int64_t rows, warps, turns;
  Value lane, warp, column, rowCount, columnCount, depthCount;
  Values loops; // with the numbers of the batch
  bool broken = false;
};

void AcrossBuilder::begin() {
  Value thread = b.threadId(), block = b.blockId();
  lane = b.rem(thread, b.integer(warpLanes));
  warp = b.div(thread, b.integer(warpLanes));
  rowCount = reader.extent(extentOf(contraction, contraction.rows));
  columnCount = reader.extent(extentOf(contraction, contraction.columns));
  depthCount = reader.extent(extentOf(contraction, contraction.depth));
  Value across = b.div(b.add(columnCount, b.integer(warpLanes - 1)), b.integer(warpLanes));
  linalg::GenericOp op = contraction.op;
  loops.resize(op.getNumLoops());
  splitIndex(b, reader, contraction, contraction.batch, b.div(block, across), loops);
  column = b.add(b.mul(b.rem(block, across), b.integer(warpLanes)), lane);
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
  const int64_t ofStep = warps * turns;
  Value steps = b.div(b.add(depthCount, b.integer(ofStep - 1)), b.integer(ofStep));
  return b.loop(steps, Values(rows, zero), [&](Value step, ValueRange values) {
    Values sums(values);
    Value first = b.add(b.mul(step, b.integer(ofStep)), warp);
    for (int64_t turn = 0; turn < turns; ++turn)
      sums = addTurn(b.add(first, b.integer(turn * warps)), sums);
    return sums;
  });
}

/// [row][warp][lane] in shared memory, so that lanes are in different banks.
LogicalResult AcrossBuilder::finish(Value row) {
  Value from = tile::advance(b, tile::sharedMemory(b), b.add(b.mul(row, b.integer(warps * warpLanes)), lane));
  Value sum = tile::loadOne(b, from);
  for (int64_t i = 1; i < warps; ++i)
    sum = b.createOrFold<arith::AddFOp>(sum, tile::loadOne(b, tile::advance(b, from, i * warpLanes)));
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
  Value to = tile::advance(b, tile::sharedMemory(b), b.add(b.mul(warp, b.integer(warpLanes)), lane));
  for (auto [row, sum] : llvm::enumerate(sums))
    tile::storeOne(b, sum, tile::advance(b, to, int64_t(row) * warps * warpLanes));
  tile::barrier(b);
  LogicalResult result = success();
  b.loop(b.integer(llvm::divideCeil(rows, warps)), {}, [&](Value turn, ValueRange) {
    Value row = b.add(b.mul(turn, b.integer(warps)), warp);
    b.ifThen(b.both(b.isBelow(row, rowCount), b.isBelow(column, columnCount)), [&] { result = finish(row); });
    return Values();
  });
  return result;
}

} // namespace

SearchSpace fewRowsAcrossSpace() {
  SearchSpace space;
  space.push_back({"turns", {1, 2, 4, 8}, 4});
  space.push_back({"warps", {4, 8, 16}, 16});
  return space;
}

LogicalResult buildFewRowsAcross(tile::Builder &b, const StepContext &context, const Contraction &contraction,
                                 const SchedulePoint &point, DevicePlan &plan) {
  const int64_t warps = point.at("warps");
  const std::string name = "step_" + std::to_string(plan.functions.size());
  b.beginKernel(name, warps * warpLanes);
  Reader reader(b, context.placement, context.kernel);
  if (failed(AcrossBuilder(b, reader, context, contraction, warps, point.at("turns")).run()))
    return failure();
  b.endKernel();
  AffineExpr blocks =
      extentOf(contraction, contraction.batch) * extentOf(contraction, contraction.columns).ceilDiv(warpLanes);
  plan.launches.push_back({unsigned(plan.functions.size()), blocks, reader.parameters});
  plan.functions.push_back(
      {name, uint32_t(warps * warpLanes), uint32_t(4 * fewRowsOf(contraction) * warps * warpLanes)});
  return success();
}

} // namespace kiln::cuda
