// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/StreamK.h"

#include "targets/cuda/gemm/SplitK.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

static constexpr int64_t finishers = 256; // threads per block of the second launch, one for each element

/// Returns the K iterations of all tiles, at the kernel's bounds.
static double largestSteps(const Contraction &c, const TileShape &shape) {
  auto pieces = [](int64_t extent, int64_t size) { return double(llvm::divideCeil(extent, size)); };
  return double(largestExtent(c, c.batch)) * pieces(largestExtent(c, c.rows), shape.bm) *
         pieces(largestExtent(c, c.columns), shape.bn) * std::max(pieces(largestExtent(c, c.reduction), shape.bk), 1.0);
}

StreamK::StreamK(const StageContext &context, const Contraction &contraction, const TileShape &shape, int64_t wanted)
    : context(context), contraction(contraction), shape(shape), count(wanted) {
  if (largestSteps(contraction, shape) > double(1 << 30))
    count = 0;
}

//===- Ranges ------------------------------------------------------------===//

Value StreamK::Ranges::start(Value block) const {
  return b.add(b.mul(block, least), b.createOrFold<arith::MinSIOp>(block, longer));
}

Value StreamK::Ranges::blockOf(Value step) const {
  Value more = b.add(least, b.integer(1)), ofLonger = b.mul(longer, more);
  Value others = b.createOrFold<arith::MaxSIOp>(least, b.integer(1)); // if `least` is 0, the others have no iteration
  return b.select(b.isBelow(step, ofLonger), b.div(step, more), b.add(longer, b.div(b.sub(step, ofLonger), others)));
}

StreamK::Ranges StreamK::rangesOf(tile::Builder &b, TileScheduler &scheduler, ElementEmitter &emitter) const {
  scheduler.begin(emitter, contraction);
  Value tiles = b.mul(emitter.extent(extentOf(contraction, contraction.batch)), scheduler.ofBatch);
  Value ofTile = b.createOrFold<arith::MaxSIOp>(scheduler.steps, b.integer(1));
  Value all = b.mul(tiles, ofTile);
  return {b, ofTile, b.div(all, b.integer(count)), b.rem(all, b.integer(count))};
}

//===- The first launch --------------------------------------------------===//

void StreamK::each(tile::Builder &b, TileScheduler &scheduler, ElementEmitter &emitter,
                   function_ref<void(const Part &)> body) const {
  const Ranges ranges = rangesOf(b, scheduler, emitter);
  Value block = b.blockId(), start = ranges.start(block), end = ranges.start(b.add(block, b.integer(1)));
  Value first = b.div(start, ranges.ofTile);
  Value tiles = b.sub(b.div(b.add(end, b.sub(ranges.ofTile, b.integer(1))), ranges.ofTile), first);
  Value hasSteps = b.isBelow(start, end);
  b.loop(b.select(hasSteps, tiles, b.integer(0)), {}, [&](Value iteration, ValueRange) {
    Value number = b.add(first, iteration), tileStart = b.mul(number, ranges.ofTile);
    Part part{scheduler.tileOf(b.div(number, scheduler.ofBatch), b.rem(number, scheduler.ofBatch)), {}, {}, {}, {}};
    part.firstStep = b.createOrFold<arith::MaxSIOp>(b.sub(start, tileStart), b.integer(0));
    Value last = b.createOrFold<arith::MinSIOp>(b.sub(end, tileStart), ranges.ofTile);
    part.steps = b.sub(last, part.firstStep);
    part.isWhole = b.compare(arith::CmpIPredicate::eq, part.steps, ranges.ofTile);
    part.place = b.add(b.mul(block, b.integer(2)), b.createOrFold<arith::MinSIOp>(iteration, b.integer(1)));
    body(part);
    return Values();
  });
}

void StreamK::store(tile::Builder &b, ElementEmitter &emitter, const Part &part, Value element, Value sum) const {
  Value offset = b.add(b.mul(part.place, b.integer(shape.bm * shape.bn)), element);
  b.store(sum, emitter.scratch(partialSumsAt(context)), offset);
}

//===- The second launch -------------------------------------------------===//

Value StreamK::load(tile::Builder &b, ElementEmitter &emitter, Value place, Value element) const {
  Value offset = b.add(b.mul(place, b.integer(shape.bm * shape.bn)), element);
  return b.load(b.getF32Type(), emitter.scratch(partialSumsAt(context)), offset);
}

/// Finishes an element of the tile within which block `boundary` begins, if no earlier block begins within it.
LogicalResult StreamK::finish(tile::Builder &b, ElementEmitter &emitter, TileScheduler &scheduler, const Ranges &ranges,
                              Value boundary, Value element) const {
  LogicalResult result = success();
  Value before = b.sub(boundary, b.integer(1)), start = ranges.start(boundary), startBefore = ranges.start(before);
  Value number = b.div(start, ranges.ofTile), tileStart = b.mul(number, ranges.ofTile);
  Value isFirst = b.compare(arith::CmpIPredicate::sle, startBefore, tileStart);
  b.ifThen(b.both(b.isBelow(tileStart, start), isFirst), [&] {
    const TileScheduler::Tile tile =
        scheduler.tileOf(b.div(number, scheduler.ofBatch), b.rem(number, scheduler.ofBatch));
    Value row = b.add(tile.row, b.div(element, b.integer(shape.bn)));
    Value column = b.add(tile.column, b.rem(element, b.integer(shape.bn)));
    b.ifThen(b.both(b.isBelow(row, scheduler.rowCount), b.isBelow(column, scheduler.columnCount)), [&] {
      // The tile is the last one of the block before, and also its first one if that block begins with the tile.
      Value isOnly = b.compare(arith::CmpIPredicate::eq, startBefore, tileStart);
      Value place = b.add(b.mul(before, b.integer(2)), b.select(isOnly, b.integer(0), b.integer(1)));
      Value last = ranges.blockOf(b.add(tileStart, b.sub(ranges.ofTile, b.integer(1))));
      Values sum = b.loop(b.sub(last, before), load(b, emitter, place, element), [&](Value i, ValueRange sum) {
        Value next = load(b, emitter, b.mul(b.add(boundary, i), b.integer(2)), element);
        return Values{b.createOrFold<arith::AddFOp>(sum.front(), next)};
      });
      result = finishElement(b, emitter, context, contraction, tile.batch, row, column, sum.front());
    });
  });
  return result;
}

LogicalResult StreamK::buildSecond(tile::Builder &b, LaunchPlan &plan) const {
  const std::string name = "step_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = finishers};
  const int64_t ofTile = shape.bm * shape.bn / finishers; // blocks per tile
  b.beginKernel(name, launch);
  b.launchDependents();
  ElementEmitter emitter(b, context.placement, context.kernel);
  TileScheduler scheduler(b, shape);
  const Ranges ranges = rangesOf(b, scheduler, emitter);
  Value block = b.blockId();
  Value boundary = b.add(b.div(block, b.integer(ofTile)), b.integer(1));
  Value element = b.add(b.mul(b.rem(block, b.integer(ofTile)), b.integer(finishers)), b.threadId());
  if (failed(finish(b, emitter, scheduler, ranges, boundary, element)))
    return failure();
  b.endKernel();
  AffineExpr blocks = getAffineConstantExpr((count - 1) * ofTile, context.kernel->getContext());
  plan.launches.push_back({unsigned(plan.functions.size()), blocks, emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  plan.scratchBytes = std::max(plan.scratchBytes, partialSumsAt(context) + 2 * count * shape.bm * shape.bn * 4);
  return success();
}

} // namespace kiln::cuda
