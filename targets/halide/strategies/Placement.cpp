// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/strategies/Placement.h"

#include "compiler/dialect/Extents.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "targets/halide/Structure.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Func;
using Halide::TailStrategy;
using Halide::Var;

void vectorizeGuarded(Halide::Stage stage, Var var, const Expr &extent, int lanes) {
  if (std::optional<int64_t> fixed = constantInt(extent))
    while (lanes > *fixed)
      lanes /= 2;
  if (lanes > 1)
    stage.vectorize(var, lanes, TailStrategy::GuardWithIf);
}

void padStorage(Halide::Func func, const Expr &extent, int lanes) {
  std::optional<int64_t> fixed = constantInt(extent);
  func.align_storage(func.args().front(), fixed ? int(llvm::alignTo(*fixed + 1, lanes)) : lanes);
}

void padOuterStorage(Halide::Func func, const Exprs &extents) {
  for (unsigned i = 1; i < extents.size(); ++i)
    if (std::optional<int64_t> fixed = extents[i].defined() ? constantInt(extents[i]) : std::nullopt)
      func.align_storage(dimensionVar(i), int(*fixed + 1));
}

ColumnLoops splitColumns(Halide::Func store, const Expr &extent, int64_t width, int lanes) {
  ColumnLoops loops;
  std::optional<int64_t> fixed = constantInt(extent);
  if (fixed && *fixed % lanes == 0) {
    Var vectors("vector");
    store.split(dimensionVar(0), vectors, loops.lane, lanes)
        .split(vectors, loops.column, loops.vector, int(width) / lanes, TailStrategy::GuardWithIf);
  } else {
    store.split(dimensionVar(0), loops.column, loops.vector, int(width), TailStrategy::GuardWithIf)
        .split(loops.vector, loops.vector, loops.lane, lanes);
  }
  store.vectorize(loops.lane).unroll(loops.vector);
  return loops;
}

void padColumns(Halide::Func store, const Exprs &extents, int64_t width, int lanes) {
  if (std::optional<int64_t> fixed = constantInt(extents[0]); fixed && *fixed % lanes)
    padStorage(store, extents[0], int(width));
  padOuterStorage(store, extents);
}

TuningRule registersOfTile(int64_t lanes, int64_t registers) {
  std::string vectors = "n / " + std::to_string(lanes);
  return {"m * " + vectors + " + " + vectors + " + 1 registers of " + std::to_string(registers),
          [=](const ScheduleConfig &config) {
            int64_t perRow = config.at("n") / lanes;
            return config.at("m") * perRow + perRow + 1 <= registers;
          }};
}

Expr rowOfFullTile(const Expr &row, const Expr &extent, int height) {
  // The likely tag is on the value, not on the condition: otherwise Halide does not split the loop over tiles (M-0173).
  return Halide::select(row < extent, Halide::likely(row), Halide::max(row - height, 0));
}

int64_t innermostReduction(linalg::GenericOp op) {
  unsigned loop = op.getNumLoops();
  while (op.getIteratorTypesArray()[--loop] != utils::IteratorType::reduction)
    continue;
  return largestExtent(op, loop);
}

void vectorizeReduction(const Stage &stage, int lanes, int vectors, llvm::function_ref<void(Halide::Func)> placePart) {
  Operation *combiner = reorderableCombiner(stage.op);
  if (!combiner || isa<arith::AddIOp>(combiner)) // Halide cannot reassociate sums that wrap
    return;
  Halide::Func func = stage.funcs.front();
  Halide::RVar loop = stage.domain[0], outer("outer"), inner("inner");
  std::optional<int64_t> fixed = constantInt(loop.extent());
  int width = lanes * vectors;
  // A batch-invariant kernel does not depend on the bounds, which may differ in other kernels for the same rows.
  int64_t extent = fixed ? *fixed : isBatchInvariant(stage.op) ? width : innermostReduction(stage.op);
  while (width > extent)
    width /= 2;
  // Halide turns a vector of two numbers a and b into a ramp from a with the stride b - a, so that a masked-out lane
  // would change the other one.
  if (width < 4)
    return;
  // Use fewer vectors if that leaves no remainder; a single vector only for short loops, since it waits for each
  // addition.
  if (int even = width; fixed) {
    while (*fixed % even && even > (extent > 8 * lanes ? 2 * lanes : lanes))
      even /= 2;
    width = *fixed % even ? width : even;
  }
  Var part("part");
  func.update().split(loop, outer, inner, width);
  Halide::Func parts = func.update().rfactor(inner, part);
  placePart(parts);
  parts.vectorize(part).update().vectorize(part);
  func.update().atomic().vectorize(inner);
}

SearchSpace taskParameters(func::FuncOp kernel, std::vector<int64_t> elements) {
  constexpr int64_t enough = int64_t(1) << 40;
  int64_t most = 0;
  for (Type type : kernel.getResultTypes()) {
    int64_t total = 1;
    for (AffineExpr extent : mlir::kiln::getExtents(cast<RankedTensorType>(type)))
      total = std::min(enough, total * std::min(enough >> 20, largestValue(extent, kernel)));
    most = std::max(most, total);
  }
  // A task size that covers every result makes larger ones redundant.
  auto whole = llvm::find_if(elements, [&](int64_t each) { return each >= most; });
  if (whole != elements.end())
    elements.erase(whole + 1, elements.end());
  bool canBeMany = most > 16 * elements.front();
  const Tasks usual;
  const std::vector<int64_t> numbers = canBeMany ? std::vector<int64_t>{16, 64, 256} : std::vector<int64_t>{usual.most};
  return {makeParameter("task", elements, usual.elements), makeParameter("tasks", numbers, usual.most)};
}

Tasks tasksOf(const ScheduleConfig &config) { return {config.at("task"), config.at("tasks")}; }

Expr taskExtent(const Output &output, unsigned outer, int64_t inner, const Tasks &tasks, int64_t multiple) {
  int64_t least = llvm::alignTo(std::max<int64_t>(1, tasks.elements / std::max<int64_t>(1, inner)), multiple);
  int64_t bound = output.bounds[outer];
  if (bound <= least)
    return Expr();
  if (bound <= least * tasks.most)
    return Expr(int(least));
  int step = int(tasks.most * multiple);
  return Halide::max(int(least), (output.extents[outer] + (step - 1)) / step * int(multiple));
}

void scheduleStore(const Output &output, int lanes, const Tasks &tasks, int64_t rows) {
  if (output.rank() == 0)
    return;
  Halide::Func func = output.func;
  // The outermost dimension that is worth splitting.
  unsigned outer = output.rank() - 1;
  while (outer > 0 && output.bounds[outer] == 1)
    --outer;
  int64_t inner = 1;
  for (unsigned i = 0; i < outer; ++i)
    inner *= output.bounds[i];
  rows = output.rank() > 1 ? rows : 1;
  Var first = dimensionVar(0), second = dimensionVar(1), block("block"), within("within"), row("row");
  if (Expr extent = taskExtent(output, outer, inner, tasks,
                               outer == 0   ? lanes
                               : outer == 1 ? rows
                                            : 1);
      extent.defined()) {
    func.split(dimensionVar(outer), block, within, extent, TailStrategy::GuardWithIf).parallel(block);
    if (outer < 2)
      (outer == 0 ? first : second) = within;
  }
  if (rows > 1)
    func.split(second, second, row, int(rows), TailStrategy::GuardWithIf).reorder(row, first);
  vectorizeGuarded(func, first, output.extents[0], lanes);
}

/// Returns the largest number of bytes of a tensor, saturated at a size that no machine has.
static int64_t largestBytes(RankedTensorType type, func::FuncOp kernel) {
  constexpr int64_t enough = int64_t(1) << 40;
  int64_t elements = 1;
  for (AffineExpr extent : mlir::kiln::getExtents(type))
    elements = std::min(enough, elements * std::min(enough >> 20, largestValue(extent, kernel)));
  return mlir::kiln::storedBytes(type.getElementType(), elements);
}

namespace {

/// The arguments that a kernel streams through, in addition to its results.
struct ReadStreams {
  SmallVector<BlockArgument> likeResults;
  SmallVector<BlockArgument> tables;  // arguments from which rows are gathered
  SmallVector<BlockArgument> numbers; // arguments that may be row numbers of the tables

  explicit ReadStreams(func::FuncOp kernel) {
    llvm::DenseSet<Value> lookedUp;
    kernel.walk([&](tensor::ExtractOp extract) { lookedUp.insert(extract.getTensor()); });
    for (BlockArgument argument : kernel.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() == 0)
        continue;
      if (llvm::is_contained(kernel.getResultTypes(), type))
        likeResults.push_back(argument);
      else if (lookedUp.contains(argument))
        tables.push_back(argument);
      else if (type.getElementType().isInteger(32))
        numbers.push_back(argument);
    }
  }
};

} // namespace

TuningParameter prefetchParameter(func::FuncOp kernel, const MachineModel &machine) {
  ReadStreams streams(kernel);
  int64_t bytes = 0;
  for (Type type : kernel.getResultTypes())
    bytes += largestBytes(cast<RankedTensorType>(type), kernel);
  for (BlockArgument argument : llvm::concat<BlockArgument>(streams.likeResults, streams.tables))
    bytes += largestBytes(cast<RankedTensorType>(argument.getType()), kernel);
  constexpr int64_t ahead = 4096; // bytes (M-0247, M-0255 to M-0258)
  return makeParameter("prefetch", {0, 1024, 4096, 16384}, bytes > machine.l2Bytes ? ahead : 0);
}

void prefetchStreams(Translator &translator, int64_t bytes, int64_t elements, int64_t rows) {
  if (bytes == 0)
    return;
  auto nameOf = [&](BlockArgument argument) { return translator.name("in" + std::to_string(argument.getArgNumber())); };
  auto add = [&](StreamPrefetch prefetch) {
    prefetch.onlyLast = true;
    translator.prefetches.push_back(std::move(prefetch));
  };
  ReadStreams streams(translator.kernel);
  for (BlockArgument argument : streams.likeResults) {
    int64_t ahead = bytes / bytesOf(argument, 1);
    add({nameOf(argument), std::max(ahead, elements)});
  }
  for (BlockArgument table : streams.tables)
    for (BlockArgument numbers : streams.numbers) {
      auto type = cast<RankedTensorType>(table.getType());
      int64_t row = bytesOf(table, largestValue(mlir::kiln::getExtents(type).back(), translator.kernel));
      StreamPrefetch prefetch{nameOf(table), std::max(bytes / row, rows)};
      prefetch.numbers = nameOf(numbers);
      prefetch.count = 1;
      for (unsigned i = 0, rank = cast<RankedTensorType>(numbers.getType()).getRank(); i < rank; ++i)
        prefetch.count *= translator.extent(numbers, i);
      add(std::move(prefetch));
    }
  for (const Output &output : translator.outputs)
    for (auto [i, type] : llvm::enumerate(typesOf(output.func)))
      add({output.func.name() + (output.results.size() > 1 ? "." + std::to_string(i) : ""), bytes / type.bytes()});
}

bool isReusedByReduction(linalg::GenericOp op) {
  for (Value result : op.getResults())
    for (OpOperand &use : result.getUses()) {
      auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!user && isa<func::ReturnOp>(use.getOwner()))
        continue;
      if (!user) // gathered
        return true;
      if (user.getNumReductionLoops() == 0) {
        if (isReusedByReduction(user))
          return true;
        continue;
      }
      AffineMap map = user.getMatchingIndexingMap(&use);
      for (unsigned loop = 0; loop < user.getNumLoops(); ++loop)
        if (!map.isFunctionOfDim(loop) && staticExtent(user, loop) != 1)
          return true;
    }
  return false;
}

bool isReadBack(linalg::GenericOp op, const llvm::DenseSet<Operation *> &placed) {
  bool isResult = false, isRead = false;
  for (Operation *user : op->getUsers())
    (isa<func::ReturnOp>(user) ? isResult : isRead) |= !placed.contains(user);
  return isResult && isRead;
}

namespace {

/// How a long sum is split. The rounding errors of sequential additions add up, so a long sum becomes a sum of about as
/// many partial sums as each has terms.
struct SumParts {
  int loop = 0;  // the longest loop of the stage's domain, which is cut into parts
  int turns = 0; // iterations of that loop in a part
};

std::optional<SumParts> partsOfLongSum(const Stage &stage) {
  constexpr int64_t fewTerms = 32;
  if (!stage.isReduction || stage.funcs.size() != 1 || isBatchInvariant(stage.op) ||
      !isa_and_nonnull<arith::AddFOp>(reorderableCombiner(stage.op)))
    return std::nullopt;
  SmallVector<unsigned> loops; // as the domain has them, the innermost one first
  linalg::GenericOp op = stage.op;
  op.getReductionDims(loops);
  std::reverse(loops.begin(), loops.end());
  double terms = 1, longest = 0;
  SumParts parts;
  for (auto [number, loop] : llvm::enumerate(loops)) {
    const double turns = static_cast<double>(largestExtent(op, loop));
    terms *= turns;
    if (turns > longest) {
      longest = turns;
      parts.loop = static_cast<int>(number);
    }
  }
  if (terms <= 2 * fewTerms)
    return std::nullopt;
  parts.turns = static_cast<int>(std::ceil(longest * std::fmax(1 / std::sqrt(terms), fewTerms / terms)));
  return parts;
}

} // namespace

/// Whether the op has one result element.
static bool isOneRow(linalg::GenericOp op) {
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  return type.hasStaticShape() && type.getNumElements() == 1;
}

/// The dimension of partial sums that numbers the parts.
static const Var partNumber("number");

bool isLongSum(const Stage &stage) { return partsOfLongSum(stage).has_value(); }

Func sumInParts(const Stage &stage) {
  const SumParts parts = *partsOfLongSum(stage);
  Func sum = stage.funcs.front();
  Halide::RVar part("part"), within("within");
  sum.update().split(stage.domain[parts.loop], part, within, parts.turns);
  return sum.update().rfactor(part, partNumber);
}

bool isSharedSum(const Stage &stage) {
  constexpr double manyElements = 1 << 16, fewResults = 1 << 12, manyTerms = 512; // in at least 16 parts
  if (!isLongSum(stage))
    return false;
  linalg::GenericOp op = stage.op;
  double results = 1, terms = 1;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    (type == utils::IteratorType::parallel ? results : terms) *= static_cast<double>(largestExtent(op, loop));
  return results * terms > manyElements && results <= fewResults && terms >= manyTerms;
}

/// Vectorises a Func with storage along its innermost dimension. `isAlong`: its updates are vectorised along a
/// reduction.
static void vectorizeInnermost(Func func, const Expr &extent, int lanes, bool isAlong = false) {
  padStorage(func, extent, lanes);
  vectorizeGuarded(func, dimensionVar(0), extent, lanes);
  for (int update = 0; !isAlong && update < func.num_update_definitions(); ++update)
    vectorizeGuarded(func.update(update), dimensionVar(0), extent, lanes);
}

void placeSharedParts(Translator &translator, Func parts, Value result, int lanes) {
  parts.compute_root();
  std::vector<Halide::VarOrRVar> order;
  const int rank = parts.dimensions() - 1;
  if (rank > 0)
    vectorizeInnermost(parts, translator.extent(result, rank - 1), lanes);
  for (int i = 0; i < rank; ++i)
    order.push_back(dimensionVar(i));
  order.push_back(partNumber);
  parts.parallel(partNumber);
  parts.update().reorder(order).parallel(partNumber);
}

void placeAtRoot(Translator &translator, const llvm::DenseSet<Operation *> &placed, int lanes) {
  for (auto &[op, stage] : translator.stages) {
    if (placed.contains(op) || !(stage.isReduction || isReusedByReduction(stage.op) || isReadBack(stage.op, placed)))
      continue;
    // Vectorise along the reduction as in a row of a kernel with several rows: always if the kernel is batch-invariant,
    // otherwise only if there is one row, so that no vector can hold several rows.
    const bool isAlong =
        stage.isReduction && readsAlongReduction(stage.op) && (isBatchInvariant(op) || isOneRow(stage.op));
    for (auto [number, func] : llvm::enumerate(stage.funcs)) {
      func.compute_root();
      if (isAlong)
        vectorizeReduction(stage, lanes, mostVectors, [](Func part) { part.compute_root(); });
      const bool isInParts = !isAlong && isLongSum(stage), isShared = isInParts && isSharedSum(stage);
      SmallVector<Func> summed{func};
      if (isInParts)
        summed.push_back(sumInParts(stage));
      if (isShared)
        placeSharedParts(translator, summed.pop_back_val(), op->getResult(number), lanes);
      else
        summed.back().compute_root();
      if (func.dimensions() == 0)
        continue;
      Exprs extents;
      for (int i = func.dimensions(); i-- > 0;)
        extents.push_back(translator.extent(op->getResult(number), i));
      Expr extent = extents.front();
      padOuterStorage(func, extents);
      for (Func each : summed)
        vectorizeInnermost(each, extent, lanes, isAlong);
    }
  }
}

} // namespace kiln::halide
