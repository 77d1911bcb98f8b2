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
#include "targets/cuda/rows/FusedStages.h"
#include "targets/cuda/rows/ThreadGroup.h"
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
  RowsBuilder(tile::Builder &b, const RowRun &run, const StepContext &context, Reader &reader, Team &team)
      : b(b), run(run), steps(ArrayRef(context.placement.steps).slice(run.first, run.count)), reader(reader),
        team(team) {}

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
  ArrayRef<Step> steps;
  Reader &reader;
  Team &team;
  Values row;                                                                 // coordinates of the row
  std::map<std::pair<const void *, std::vector<const void *>>, Values> known; // coordinates of elements
};

/// Splits an index into coordinates, the last one innermost.
Values RowsBuilder::split(ArrayRef<AffineExpr> extents, Value number) {
  Values at(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    Value size = i == 0 ? Value() : reader.extent(extents[i]);
    at[i] = i == 0 ? number : b.rem(number, size);
    number = i == 0 ? number : b.div(number, size);
  }
  return at;
}

/// Returns the coordinates of an element of the row; the same SSA values each time, by which the reader recognises
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
  Values values = team.reduce(reader.extent(length), fixedValue(length), team.start(combiner, initial),
                              [&](Value element, const Values &last) {
                                llvm::copy(coordinates(extents, element), loops.begin() + parallel);
                                return reader.reduceOnce(op, loops, last);
                              });
  return team.join(combiner, std::move(values));
}

LogicalResult RowsBuilder::computeRow() {
  reader.reduceTogether = [&](linalg::GenericOp op, Values loops, Values initial) {
    return reduce(op, std::move(loops), std::move(initial));
  };
  for (linalg::GenericOp op : run.perRow) {
    Values loops(row);
    loops.resize(op.getNumLoops());
    Values results = reader.evaluate(op, loops);
    if (results.empty())
      return failure();
    for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
      reader.known[result] = value;
  }
  reader.reduceTogether = nullptr;
  return success();
}

/// Reads everything that the element needs before it stores anything.
LogicalResult RowsBuilder::storeElement(Value element) {
  Values loops(row);
  llvm::append_range(loops, coordinates(run.elements, element));
  SmallVector<std::pair<const Store *, Value>> elements;
  for (const Step &step : steps) {
    if (step.stores.empty() || !llvm::is_contained(run.perElement, step.op))
      continue;
    Values results = reader.evaluate(step.op, loops);
    if (results.empty())
      return failure();
    for (const Store &store : step.stores)
      elements.emplace_back(&store, results[cast<OpResult>(store.value).getResultNumber()]);
  }
  for (auto [store, value] : elements)
    reader.store(*store, value, loops);
  return success();
}

LogicalResult RowsBuilder::storeElements() {
  if (run.perElement.empty())
    return success();
  LogicalResult result = success();
  AffineExpr length = getProduct(run.elements, run.perElement.front()->getContext());
  team.forEach(reader.extent(length), fixedValue(length), [&](Value element) {
    if (succeeded(result))
      result = storeElement(element);
  });
  return result;
}

void RowsBuilder::storeRow() {
  SmallVector<const Store *> stores;
  for (const Step &step : steps)
    if (llvm::is_contained(run.perRow, step.op))
      for (const Store &store : step.stores)
        stores.push_back(&store);
  if (stores.empty())
    return;
  if (run.isInPlace && !run.perElement.empty())
    team.sync();
  b.ifThen(b.compare(arith::CmpIPredicate::eq, team.thread(), b.integer(0)), [&] {
    for (const Store *store : stores)
      reader.store(*store, reader.known[store->value], row);
  });
}

LogicalResult RowsBuilder::build() {
  row = split(run.rows, team.number());
  for (linalg::GenericOp op : run.perElement)
    reader.computed.insert(op->result_begin(), op->result_end());
  if (failed(computeRow()))
    return failure();
  if (run.isInPlace)
    team.sync();
  if (failed(storeElements()))
    return failure();
  storeRow();
  return success();
}

LogicalResult RowsBuilder::computeOnly(Value wanted, function_ref<void(Value number, Value element)> give) {
  row = split(run.rows, b.integer(0));
  for (linalg::GenericOp op : run.perElement)
    reader.computed.insert(op->result_begin(), op->result_end());
  if (failed(computeRow()))
    return failure();
  LogicalResult result = success();
  AffineExpr length = getProduct(run.elements, wanted.getContext());
  team.forEach(reader.extent(length), fixedValue(length), [&](Value number) {
    Values loops(row);
    llvm::append_range(loops, coordinates(run.elements, number));
    Values results = reader.evaluate(wanted.getDefiningOp<linalg::GenericOp>(), loops);
    if (results.empty())
      result = failure();
    else
      give(number, results[cast<OpResult>(wanted).getResultNumber()]);
  });
  return result;
}

class Rows : public StepStrategy {
public:
  Rows(const StepContext &context, RowRun found)
      : context(context), run(std::move(found)), rows(getProduct(run.rows, this->context.kernel->getContext())) {}

  StringRef name() const override { return "rows"; }
  size_t numSteps() const override { return run.count; }
  ArrayRef<Value> unstored() const override { return run.unstored; }
  SearchSpace searchSpace() const override;
  /// At most 16 elements of a row are in registers.
  std::optional<BlockNeeds> needs(const SchedulePoint &point) const override {
    return BlockNeeds{point.at("rows_threads") * point.at("rows_per_block"), 48, 0, 0};
  }
  LogicalResult build(tile::Builder &b, const SchedulePoint &point, DevicePlan &plan) const override;

private:
  StepContext context;
  RowRun run;
  AffineExpr rows;
};

/// With few rows, each one gets more threads: a GPU runs some 200,000 at a time.
SearchSpace Rows::searchSpace() const {
  const int64_t count = largestValue(rows, context.kernel), perThread = count < 512 ? 4 : 16;
  SearchSpace space;
  space.push_back(makeParameter("rows_threads", {32, 64, 128, 256, 512, 1024},
                                int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(run.length, perThread)))));
  const bool isWarp = space.back().preset == 32;
  space.push_back(makeParameter("rows_per_block", {1, 2, 4, 8, 16}, isWarp && count >= 512 ? 4 : 1));
  space.rules.push_back({"rows_per_block = 1 or rows_threads = 32", [](const SchedulePoint &point) {
                           return point.at("rows_per_block") == 1 || point.at("rows_threads") == 32;
                         }});
  return space;
}

LogicalResult Rows::build(tile::Builder &b, const SchedulePoint &point, DevicePlan &plan) const {
  const int64_t threads = point.at("rows_threads"), perBlock = point.at("rows_per_block");
  const std::string name = "rows_" + std::to_string(plan.functions.size());
  const tile::KernelLaunch launch{.threads = threads * perBlock, .waitsAtOnce = false};
  b.beginKernel(name, launch);
  Reader reader(b, context.placement, context.kernel);
  b.letNextBegin();
  prefetchSmallWeights(b, reader, context.kernel, launch.threads);
  b.awaitKernels();
  Team team(b, threads, perBlock);
  LogicalResult result = success();
  auto body = [&] { result = RowsBuilder(b, run, context, reader, team).build(); };
  if (perBlock == 1)
    body();
  else // all threads of a warp are beyond the last row, or none is
    b.ifThen(b.compare(arith::CmpIPredicate::slt, team.number(), reader.extent(rows)), body);
  if (failed(result))
    return failure();
  b.endKernel();
  plan.launches.push_back({unsigned(plan.functions.size()), rows.ceilDiv(perBlock), reader.parameters});
  plan.functions.push_back(makeFunction(name, launch));
  return success();
}

} // namespace

LogicalResult computeOnlyRow(tile::Builder &b, const RowRun &run, const StepContext &context, Reader &reader,
                             int64_t threads, Value row, function_ref<void(Value number, Value element)> give) {
  Team team(b, threads, 1);
  return RowsBuilder(b, run, context, reader, team).computeOnly(row, give);
}

std::unique_ptr<StepStrategy> matchRows(const StepContext &context) {
  std::optional<RowRun> run = findRowRun(context);
  return run ? std::make_unique<Rows>(context, std::move(*run)) : nullptr;
}

} // namespace kiln::cuda
