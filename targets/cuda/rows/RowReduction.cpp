// SPDX-License-Identifier: Apache-2.0
//
// 1. The row's thread group computes values of the row, stage by stage: reductions in parts, everything else
//    redundantly in each thread. These values stay in registers.
// 2. Then each thread computes and stores its elements of the row, for all stages at once.
// 3. Last, one thread stores the values of the row that are needed in memory.
//
// A row that is short enough is read from memory once: all code is unrolled, and elements that were loaded or computed
// stay in registers. For a longer row, all reads but the first one hit the caches.
#include "targets/cuda/rows/RowReduction.h"

#include "compiler/dialect/Extents.h"
#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/gemm/Prefetch.h"
#include "targets/cuda/ptx/ElementEmitter.h"
#include <map>

namespace kiln::cuda {

using namespace mlir;
using mlir::kiln::getProduct;
using tile::Values;

namespace {

std::optional<int64_t> fixedValue(AffineExpr extent) {
  auto constant = dyn_cast<AffineConstantExpr>(extent);
  return constant ? std::optional(constant.getValue()) : std::nullopt;
}

/// Builds the function of a run.
class RowsBuilder {
public:
  RowsBuilder(tile::Builder &b, const RowRun &run, const StageContext &context, ElementEmitter &emitter,
              ThreadGroup &threadGroup)
      : b(b), run(run), stages(ArrayRef(context.placement.stages).slice(run.first, run.count)), emitter(emitter),
        threadGroup(threadGroup) {}

  LogicalResult build();
  LogicalResult computeOnly(Value wanted, function_ref<void(Value number, Value element)> give);

private:
  Values split(ArrayRef<AffineExpr> extents, Value number);
  Values coordinates(ArrayRef<AffineExpr> extents, Value element);
  Values reduce(linalg::GenericOp op, Values loops, Values initial);
  LogicalResult computeRow();
  LogicalResult storeElements();
  LogicalResult storeElement(Value element);
  void storeRow();

  tile::Builder &b;
  const RowRun &run;
  ArrayRef<KernelStage> stages;
  ElementEmitter &emitter;
  ThreadGroup &threadGroup;
  Values row;                                                                 // coordinates of the row
  std::map<std::pair<const void *, std::vector<const void *>>, Values> known; // coordinates of elements
};

/// Splits an index into coordinates, the last one innermost.
Values RowsBuilder::split(ArrayRef<AffineExpr> extents, Value number) {
  Values at(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    Value size = i == 0 ? Value() : emitter.extent(extents[i]);
    at[i] = i == 0 ? number : b.rem(number, size);
    number = i == 0 ? number : b.div(number, size);
  }
  return at;
}

/// Returns the coordinates of an element of the row; the same SSA values each time, by which the emitter recognises
/// what it has loaded.
Values RowsBuilder::coordinates(ArrayRef<AffineExpr> extents, Value element) {
  std::vector<const void *> sizes;
  for (AffineExpr extent : extents)
    sizes.push_back(extent.getAsOpaquePointer());
  Values &at = known[{element.getAsOpaquePointer(), std::move(sizes)}];
  if (at.empty())
    at = split(extents, element);
  return at;
}

Values RowsBuilder::reduce(linalg::GenericOp op, Values loops, Values initial) {
  const Combiner combiner = *Combiner::of(op);
  const unsigned parallel = op.getNumParallelLoops();
  const SmallVector<AffineExpr> all = loopExtents(op);
  ArrayRef<AffineExpr> extents = ArrayRef(all).drop_front(parallel);
  AffineExpr length = getProduct(extents, op->getContext());
  Values values = threadGroup.reduce(emitter.extent(length), fixedValue(length), threadGroup.start(combiner, initial),
                                     [&](Value element, const Values &last) {
                                       llvm::copy(coordinates(extents, element), loops.begin() + parallel);
                                       return emitter.reduceOnce(op, loops, last);
                                     });
  return threadGroup.combine(combiner, std::move(values));
}

LogicalResult RowsBuilder::computeRow() {
  emitter.reduceTogether = [&](linalg::GenericOp op, Values loops, Values initial) {
    return reduce(op, std::move(loops), std::move(initial));
  };
  for (linalg::GenericOp op : run.perRow) {
    Values loops(row);
    loops.resize(op.getNumLoops());
    Values results = emitter.evaluate(op, loops);
    if (results.empty())
      return failure();
    for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
      emitter.known[result] = value;
  }
  emitter.reduceTogether = nullptr;
  return success();
}

/// Reads everything that the element needs before it stores anything.
LogicalResult RowsBuilder::storeElement(Value element) {
  Values loops(row);
  llvm::append_range(loops, coordinates(run.elements, element));
  SmallVector<std::pair<const Store *, Value>> elements;
  for (const KernelStage &stage : stages) {
    if (stage.stores.empty() || !llvm::is_contained(run.perElement, stage.op))
      continue;
    Values results = emitter.evaluate(stage.op, loops);
    if (results.empty())
      return failure();
    for (const Store &store : stage.stores)
      elements.emplace_back(&store, results[cast<OpResult>(store.value).getResultNumber()]);
  }
  for (auto [store, value] : elements)
    emitter.store(*store, value, loops);
  return success();
}

LogicalResult RowsBuilder::storeElements() {
  if (run.perElement.empty())
    return success();
  LogicalResult result = success();
  AffineExpr length = getProduct(run.elements, run.perElement.front()->getContext());
  threadGroup.forEach(emitter.extent(length), fixedValue(length), [&](Value element) {
    if (succeeded(result))
      result = storeElement(element);
  });
  return result;
}

void RowsBuilder::storeRow() {
  SmallVector<const Store *> stores;
  for (const KernelStage &stage : stages)
    if (llvm::is_contained(run.perRow, stage.op))
      for (const Store &store : stage.stores)
        stores.push_back(&store);
  if (stores.empty())
    return;
  if (run.isInPlace && !run.perElement.empty())
    threadGroup.sync();
  b.ifThen(b.compare(arith::CmpIPredicate::eq, threadGroup.thread(), b.integer(0)), [&] {
    for (const Store *store : stores)
      emitter.store(*store, emitter.known[store->value], row);
  });
}

LogicalResult RowsBuilder::build() {
  row = split(run.rows, threadGroup.number());
  for (linalg::GenericOp op : run.perElement)
    emitter.computed.insert(op->result_begin(), op->result_end());
  if (failed(computeRow()))
    return failure();
  if (run.isInPlace)
    threadGroup.sync();
  if (failed(storeElements()))
    return failure();
  storeRow();
  return success();
}

LogicalResult RowsBuilder::computeOnly(Value wanted, function_ref<void(Value number, Value element)> give) {
  row = split(run.rows, b.integer(0));
  for (linalg::GenericOp op : run.perElement)
    emitter.computed.insert(op->result_begin(), op->result_end());
  if (failed(computeRow()))
    return failure();
  LogicalResult result = success();
  AffineExpr length = getProduct(run.elements, wanted.getContext());
  threadGroup.forEach(emitter.extent(length), fixedValue(length), [&](Value number) {
    Values loops(row);
    llvm::append_range(loops, coordinates(run.elements, number));
    Values results = emitter.evaluate(wanted.getDefiningOp<linalg::GenericOp>(), loops);
    if (results.empty())
      result = failure();
    else
      give(number, results[cast<OpResult>(wanted).getResultNumber()]);
  });
  return result;
}

class Rows : public StageStrategy {
public:
  Rows(const StageContext &context, RowRun found)
      : context(context), run(std::move(found)), rows(getProduct(run.rows, this->context.kernel->getContext())) {}

  StringRef name() const override { return "rows"; }
  size_t numStages() const override { return run.count; }
  ArrayRef<Value> unstored() const override { return run.unstored; }
  SearchSpace searchSpace() const override;
  /// At most 16 elements of a row are in registers.
  std::optional<BlockNeeds> needs(const ScheduleConfig &config) const override {
    return BlockNeeds{config.at("rows_threads") * config.at("rows_per_block"), 48, 0, 0};
  }
  LogicalResult build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const override;

private:
  StageContext context;
  RowRun run;
  AffineExpr rows;
};

/// With few rows, each one gets more threads: a GPU runs some 200,000 at a time.
SearchSpace Rows::searchSpace() const {
  const int64_t count = largestValue(rows, context.kernel), perThread = count < 512 ? 4 : 16;
  SearchSpace space;
  space.push_back(makeParameter("rows_threads", {32, 64, 128, 256, 512, 1024},
                                int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(run.length, perThread)))));
  const bool isWarp = space.back().defaultValue == 32;
  space.push_back(makeParameter("rows_per_block", {1, 2, 4, 8, 16}, isWarp && count >= 512 ? 4 : 1));
  space.rules.push_back({"rows_per_block = 1 or rows_threads = 32", [](const ScheduleConfig &config) {
                           return config.at("rows_per_block") == 1 || config.at("rows_threads") == 32;
                         }});
  return space;
}

LogicalResult Rows::build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const {
  const int64_t threads = config.at("rows_threads"), perBlock = config.at("rows_per_block");
  const std::string name = "rows_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = threads * perBlock, .waitsAtOnce = false};
  b.beginKernel(name, launch);
  ElementEmitter emitter(b, context.placement, context.kernel);
  b.launchDependents();
  prefetchSmallWeights(b, emitter, context.kernel, launch.threads);
  b.waitForDependencies();
  ThreadGroup threadGroup(b, threads, perBlock);
  LogicalResult result = success();
  auto body = [&] { result = buildRow(b, run, context, emitter, threadGroup); };
  if (perBlock == 1)
    body();
  else // all threads of a warp are beyond the last row, or none is
    b.ifThen(b.compare(arith::CmpIPredicate::slt, threadGroup.number(), emitter.extent(rows)), body);
  if (failed(result))
    return failure();
  b.endKernel();
  plan.launches.push_back({unsigned(plan.functions.size()), rows.ceilDiv(perBlock), emitter.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  return success();
}

} // namespace

LogicalResult buildRow(tile::Builder &b, const RowRun &run, const StageContext &context, ElementEmitter &emitter,
                       ThreadGroup &threadGroup) {
  return RowsBuilder(b, run, context, emitter, threadGroup).build();
}

LogicalResult computeOnlyRow(tile::Builder &b, const RowRun &run, const StageContext &context, ElementEmitter &emitter,
                             int64_t threads, Value row, function_ref<void(Value number, Value element)> give) {
  ThreadGroup threadGroup(b, threads, 1);
  return RowsBuilder(b, run, context, emitter, threadGroup).computeOnly(row, give);
}

std::unique_ptr<StageStrategy> matchRows(const StageContext &context) {
  std::optional<RowRun> run = findRowRun(context);
  return run ? std::make_unique<Rows>(context, std::move(*run)) : nullptr;
}

} // namespace kiln::cuda
