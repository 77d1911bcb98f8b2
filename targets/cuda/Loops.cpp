// SPDX-License-Identifier: Apache-2.0
//
// 1. A launch for each step of the placement, with a thread for each point of the op's parallel loops. The innermost
//    dimension of what it stores first runs along the threads of a warp.
// 2. A thread that is beyond the last point does nothing.
// 3. All that a thread reads it reads before it stores, so a result may lie in the memory of an argument.
#include "targets/cuda/Loops.h"

#include "compiler/dialect/Extents.h"
#include "targets/cuda/Ptx.h"
#include "targets/cuda/Reader.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

Schedulable describeLoops() {
  Schedulable result;
  result.strategy = "loops";
  result.space.push_back({"threads", {64, 128, 256, 512}, 256});
  return result;
}

namespace {

/// What a step runs over: loops of its op, or the dimensions of what it copies.
struct Points {
  SmallVector<AffineExpr> extents; // of all loops
  SmallVector<unsigned> parallel;  // those of threads, outermost first
};

Points pointsOf(const Step &step) {
  Points points;
  if (linalg::GenericOp op = step.op) {
    points.extents = loopExtents(op);
    const unsigned result = cast<OpResult>(step.stores.front().value).getResultNumber();
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      points.parallel.push_back(map.getDimPosition(i));
    return points;
  }
  points.extents = mlir::kiln::getExtents(cast<RankedTensorType>(step.stores.front().value.getType()));
  for (unsigned i = 0; i < points.extents.size(); ++i)
    points.parallel.push_back(i);
  return points;
}

class LoopsBuilder {
public:
  LoopsBuilder(func::FuncOp kernel, int64_t threads, ModuleOp module)
      : kernel(kernel), threads(threads), placement(kernel), b(module) {}

  LogicalResult run(DevicePlan &plan) {
    plan.scratchBytes = placement.scratchBytes;
    for (const Step &step : placement.steps) {
      const std::string name = "step_" + std::to_string(plan.functions.size());
      b.beginKernel(name, threads);
      Reader reader(b, placement, kernel);
      const Points points = pointsOf(step);
      if (failed(buildBody(step, points, reader)))
        return failure();
      b.endKernel();
      SmallVector<AffineExpr> counts;
      for (unsigned loop : points.parallel)
        counts.push_back(points.extents[loop]);
      AffineExpr count = mlir::kiln::getProduct(counts, kernel.getContext());
      plan.launches.push_back({unsigned(plan.functions.size()), count.ceilDiv(threads), reader.parameters});
      plan.functions.push_back({name, uint32_t(threads), 0});
    }
    return success();
  }

private:
  LogicalResult buildBody(const Step &step, const Points &points, Reader &reader);
  Values loopsOf(const Points &points, ArrayRef<Value> sizes, Value point);
  LogicalResult storeAll(const Step &step, const Values &loops, Reader &reader);

  func::FuncOp kernel;
  int64_t threads;
  Placement placement;
  tile::Builder b;
};

/// The number of the point's thread as the numbers of the loops.
Values LoopsBuilder::loopsOf(const Points &points, ArrayRef<Value> sizes, Value point) {
  Values loops(points.extents.size());
  for (size_t i = points.parallel.size(); i-- > 0;) {
    Value rest = i == 0 ? point : b.rem(point, sizes[i]);
    loops[points.parallel[i]] =
        rest.getType().isInteger(64) ? b.createOrFold<arith::TruncIOp>(b.getI32Type(), rest) : rest;
    point = i == 0 ? point : b.div(point, sizes[i]);
  }
  return loops;
}

LogicalResult LoopsBuilder::storeAll(const Step &step, const Values &loops, Reader &reader) {
  if (!step.op) {
    Value element = reader.read(step.stores.front().value, loops);
    if (element)
      reader.store(step.stores.front(), element, loops);
    return success(bool(element));
  }
  Values results = reader.evaluate(step.op, loops);
  if (results.empty())
    return failure();
  for (const Store &store : step.stores) {
    const unsigned number = cast<OpResult>(store.value).getResultNumber();
    reader.store(store, results[number], reader.written(step.op, number, loops));
  }
  return success();
}

LogicalResult LoopsBuilder::buildBody(const Step &step, const Points &points, Reader &reader) {
  // Numbers of threads have no sign: those up to the end of the last block of 2^31 - 1 points fit.
  const bool isWide = mostElements(step.stores.front().value.getType(), kernel) > std::numeric_limits<int32_t>::max();
  auto fit = [&](Value x) { return isWide ? b.createOrFold<arith::ExtUIOp>(b.getI64Type(), x) : x; };
  Value count = fit(b.integer(1));
  Values sizes;
  for (unsigned loop : points.parallel) {
    sizes.push_back(fit(reader.extent(points.extents[loop])));
    count = b.createOrFold<arith::MulIOp>(count, sizes.back());
  }
  Value first = b.createOrFold<arith::MulIOp>(fit(b.blockId()), b.integer(fit(b.integer(0)).getType(), threads));
  Value point = b.createOrFold<arith::AddIOp>(first, fit(b.threadId()));
  LogicalResult result = success();
  b.ifThen(b.compare(arith::CmpIPredicate::ult, point, count),
           [&] { result = storeAll(step, loopsOf(points, sizes, point), reader); });
  return result;
}

} // namespace

FailureOr<DevicePlan> planLoops(func::FuncOp kernel, const SchedulePoint &point) {
  if (failed(checkKernel(kernel)))
    return failure();
  DeviceModule device;
  DevicePlan plan;
  if (failed(LoopsBuilder(kernel, point.at("threads"), device.get()).run(plan)))
    return failure();
  plan.text = device.print();
  llvm::Expected<std::string> text = device.compile({"sm_80", "+ptx70"});
  if (!text)
    return kernel.emitError() << "the kernel has no device code: " << llvm::toString(text.takeError());
  plan.images.push_back({std::move(*text), 80, false});
  return plan;
}

} // namespace kiln::cuda
