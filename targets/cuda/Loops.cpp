// SPDX-License-Identifier: Apache-2.0
//
// 1. A launch has a thread for each point of the op's parallel loops. The innermost dimension of the first stored
//    value is along the threads of a warp.
// 2. A thread beyond the last point does nothing.
// 3. A thread reads everything before it stores, so a result may share the memory of an argument.
#include "targets/cuda/Loops.h"

#include "compiler/dialect/Extents.h"
#include "targets/cuda/ptx/ElementEmitter.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

namespace {

/// The iteration space of a stage: the loops of its op, or the dimensions of the value that it copies.
struct Points {
  SmallVector<AffineExpr> extents; // for all loops
  SmallVector<unsigned> parallel;  // loops mapped to threads, outermost first
};

Points pointsOf(const KernelStage &stage) {
  Points points;
  if (linalg::GenericOp op = stage.op) {
    points.extents = loopExtents(op);
    const unsigned result = cast<OpResult>(stage.stores.front().value).getResultNumber();
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      points.parallel.push_back(map.getDimPosition(i));
    return points;
  }
  points.extents = mlir::kiln::getExtents(cast<RankedTensorType>(stage.stores.front().value.getType()));
  for (unsigned i = 0; i < points.extents.size(); ++i)
    points.parallel.push_back(i);
  return points;
}

/// Builds the function of a stage.
class LoopsBuilder {
public:
  LoopsBuilder(tile::Builder &b, const KernelStage &stage, int64_t threads, ElementEmitter &emitter)
      : b(b), stage(stage), threads(threads), emitter(emitter), points(pointsOf(stage)) {}

  LogicalResult run(func::FuncOp kernel);
  /// Returns the number of points.
  AffineExpr count(MLIRContext *context) const {
    SmallVector<AffineExpr> counts;
    for (unsigned loop : points.parallel)
      counts.push_back(points.extents[loop]);
    return mlir::kiln::getProduct(counts, context);
  }

private:
  Values loopsOf(ArrayRef<Value> sizes, Value point);
  LogicalResult storeAll(const Values &loops);

  tile::Builder &b;
  const KernelStage &stage;
  int64_t threads;
  ElementEmitter &emitter;
  Points points;
};

/// Converts the thread's linear index to the indices of the loops.
Values LoopsBuilder::loopsOf(ArrayRef<Value> sizes, Value point) {
  Values loops(points.extents.size());
  for (size_t i = points.parallel.size(); i-- > 0;) {
    Value rest = i == 0 ? point : b.rem(point, sizes[i]);
    loops[points.parallel[i]] =
        rest.getType().isInteger(64) ? b.createOrFold<arith::TruncIOp>(b.getI32Type(), rest) : rest;
    point = i == 0 ? point : b.div(point, sizes[i]);
  }
  return loops;
}

LogicalResult LoopsBuilder::storeAll(const Values &loops) {
  if (!stage.op) {
    Value element = emitter.read(stage.stores.front().value, loops);
    if (element)
      emitter.store(stage.stores.front(), element, loops);
    return success(bool(element));
  }
  Values results = emitter.evaluate(stage.op, loops);
  if (results.empty())
    return failure();
  for (const Store &store : stage.stores) {
    const unsigned number = cast<OpResult>(store.value).getResultNumber();
    emitter.store(store, results[number], emitter.written(stage.op, number, loops));
  }
  return success();
}

LogicalResult LoopsBuilder::run(func::FuncOp kernel) {
  // Thread indices are unsigned: those up to the end of the last block of 2^31 - 1 points fit.
  const bool isWide = mostElements(stage.stores.front().value.getType(), kernel) > std::numeric_limits<int32_t>::max();
  auto fit = [&](Value x) { return isWide ? b.createOrFold<arith::ExtUIOp>(b.getI64Type(), x) : x; };
  Value count = fit(b.integer(1));
  Values sizes;
  for (unsigned loop : points.parallel) {
    sizes.push_back(fit(emitter.extent(points.extents[loop])));
    count = b.createOrFold<arith::MulIOp>(count, sizes.back());
  }
  Value first = b.createOrFold<arith::MulIOp>(fit(b.blockId()), b.integer(fit(b.integer(0)).getType(), threads));
  Value point = b.createOrFold<arith::AddIOp>(first, fit(b.threadId()));
  LogicalResult result = success();
  b.ifThen(b.compare(arith::CmpIPredicate::ult, point, count), [&] { result = storeAll(loopsOf(sizes, point)); });
  return result;
}

class Loops : public StageStrategy {
public:
  explicit Loops(const StageContext &context) : context(context) {}

  StringRef name() const override { return "loops"; }

  SearchSpace searchSpace() const override {
    SearchSpace space;
    space.push_back({"threads", {64, 128, 256, 512}, 256});
    return space;
  }

  std::optional<BlockNeeds> needs(const ScheduleConfig &config) const override {
    return BlockNeeds{config.at("threads"), 40, 0, 0};
  }

  LogicalResult build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const override {
    const int64_t threads = config.at("threads");
    const std::string name = "step_" + std::to_string(plan.functions.size());
    const tile::KernelLaunch launch{.threads = threads};
    b.beginKernel(name, launch);
    b.launchDependents();
    ElementEmitter emitter(b, context.placement, context.kernel);
    LoopsBuilder loops(b, context.stage, threads, emitter);
    if (failed(loops.run(context.kernel)))
      return failure();
    b.endKernel();
    AffineExpr blocks = loops.count(context.kernel->getContext()).ceilDiv(threads);
    plan.launches.push_back({unsigned(plan.functions.size()), blocks, emitter.parameters});
    plan.functions.push_back(makeFunction(name, launch));
    return success();
  }

private:
  StageContext context;
};

} // namespace

std::unique_ptr<StageStrategy> matchLoops(const StageContext &context) { return std::make_unique<Loops>(context); }

} // namespace kiln::cuda
