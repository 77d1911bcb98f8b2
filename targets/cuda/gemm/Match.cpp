// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/gemm/Match.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "targets/cuda/tile/Shared.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Values;

//===- The op ------------------------------------------------------------===//

/// Whether it sums products of floats in f32, without a required order.
static bool isOfFloats(const ::kiln::Contraction &c) {
  linalg::GenericOp op = c.op;
  auto isFloat = [&](unsigned number) { return isa<FloatType>(getElementTypeOrSelf(op->getOperand(number))); };
  return isa<arith::AddFOp>(c.add) && c.sumType().isF32() && !c.isStrict() && !c.scale && isFloat(c.a) && isFloat(c.b);
}

//===- The kernel stage --------------------------------------------------===//

namespace {

struct Found {
  linalg::GenericOp op;
  SmallVector<unsigned> stageLoops;
  bool isOnly = true; // and reached element by element
};

/// Searches through ops that are computed where they are used. `stageLoops`: for each of the stage's loops the op's
/// loop; empty if the mapping is not that simple.
void findReduction(linalg::GenericOp op, ArrayRef<unsigned> stageLoops, const Placement &placement, Found &found) {
  if (op.getNumReductionLoops()) {
    found.isOnly &= !found.op && !stageLoops.empty();
    found.op = op;
    found.stageLoops.assign(stageLoops.begin(), stageLoops.end());
    return;
  }
  for (OpOperand &operand : op->getOpOperands()) {
    auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
    if (!producer || placement.find(operand.get()) || op.getMatchingBlockArgument(&operand).use_empty())
      continue;
    AffineMap read = operandMap(operand);
    AffineMap written =
        producer.getMatchingIndexingMap(producer.getDpsInitOperand(cast<OpResult>(operand.get()).getResultNumber()));
    SmallVector<unsigned> loops;
    if (read.isPermutation() && !stageLoops.empty()) {
      SmallVector<unsigned> ofOp(op.getNumLoops());
      for (unsigned i = 0; i < read.getNumResults(); ++i)
        ofOp[read.getDimPosition(i)] = written.getDimPosition(i);
      for (unsigned loop : stageLoops)
        loops.push_back(ofOp[loop]);
    }
    findReduction(producer, loops, placement, found);
  }
}

/// Sorts the parallel loops, in the order of the first store's dimensions; returns whether the last one is a column.
bool sortLoops(const StageContext &context, Contraction &c) {
  linalg::GenericOp stageOp = context.stage.op;
  const unsigned result = cast<OpResult>(context.stage.stores.front().value).getResultNumber();
  AffineMap stored = stageOp.getMatchingIndexingMap(stageOp.getDpsInitOperand(result));
  SmallVector<unsigned> parallel;
  for (unsigned i = 0; i < stored.getNumResults(); ++i)
    parallel.push_back(c.stageLoops[stored.getDimPosition(i)]);
  return c.sortLoops(parallel);
}

} // namespace

std::optional<Contraction> findContraction(const StageContext &context) {
  linalg::GenericOp op = context.stage.op;
  if (!op)
    return std::nullopt;
  Found found;
  findReduction(op, llvm::to_vector(llvm::seq(op.getNumLoops())), context.placement, found);
  std::optional<::kiln::Contraction> match = found.op && found.isOnly ? contractionOf(found.op) : std::nullopt;
  if (!match || !isOfFloats(*match) || llvm::is_contained(loopExtents(found.op), AffineExpr()))
    return std::nullopt;
  Contraction c{*match, found.stageLoops};
  if (!sortLoops(context, c))
    return std::nullopt;
  // Row and column indices, including those just past the end, are i32; so are block indices.
  constexpr int64_t most = int64_t(1) << 30;
  for (ArrayRef<unsigned> loops : {ArrayRef(c.batch), ArrayRef(c.rows), ArrayRef(c.columns), ArrayRef(c.reduction)})
    if (largestExtent(c, loops) > most)
      return std::nullopt;
  const double batch = double(largestExtent(c, c.batch)), columns = double(largestExtent(c, c.columns));
  const double down = std::max(1.0, double(largestExtent(c, c.rows)) / 32); // no tile has fewer rows than 32
  if (batch * down * columns > double(most))
    return std::nullopt;
  return c;
}

AffineExpr extentOf(const Contraction &contraction, ArrayRef<unsigned> loops) {
  SmallVector<AffineExpr> extents, all = loopExtents(contraction.op);
  for (unsigned loop : loops)
    extents.push_back(all[loop]);
  return mlir::kiln::getProduct(extents, contraction.op->getContext());
}

int64_t largestExtent(const Contraction &contraction, ArrayRef<unsigned> loops) {
  linalg::GenericOp op = contraction.op;
  return largestValue(extentOf(contraction, loops), op->getParentOfType<func::FuncOp>());
}

//===- Inputs ------------------------------------------------------------===//

/// Returns how many neighbouring elements form a vector that starts at multiples of their number: `most`, halved as
/// often as necessary; 1 unless the innermost index is the loop and no other index uses the loop.
static int64_t neighbours(linalg::GenericOp op, unsigned number, unsigned loop, int64_t most) {
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
  auto inner = dyn_cast<AffineDimExpr>(map.getResult(map.getNumResults() - 1));
  const int64_t extent = cast<RankedTensorType>(op->getOperand(number).getType()).getShape().back();
  auto ofLoop = dyn_cast<AffineConstantExpr>(loopExtents(op)[loop]);
  const bool isElsewhere =
      llvm::any_of(map.getResults().drop_back(), [&](AffineExpr index) { return index.isFunctionOfDim(loop); });
  if (!inner || inner.getPosition() != loop || isElsewhere || !ofLoop || ofLoop.getValue() != extent)
    return 1;
  while (extent % most != 0)
    most /= 2;
  return most;
}

ContractionInput::ContractionInput(const StageContext &context, const Contraction &contraction, bool isA)
    : number(isA ? contraction.a : contraction.b), rows(isA ? contraction.rows : contraction.columns) {
  linalg::GenericOp op = contraction.op;
  AffineMap map = op.getMatchingIndexingMap(&op->getOpOperand(number));
  const unsigned k = contraction.reduction.back();
  const bool hasInner = map.getNumResults() > 0;
  AffineExpr inner = hasInner ? map.getResult(map.getNumResults() - 1) : AffineExpr();
  isKMajor = rows.empty() || !hasInner || inner.isFunctionOfDim(k) || !inner.isFunctionOfDim(rows.back());
  std::optional<Parameter> place = context.placement.find(op->getOperand(number));
  element = getElementTypeOrSelf(op->getOperand(number));
  isPlain = place.has_value();
  if (isPlain && hasInner)
    together = neighbours(op, number, isKMajor ? k : rows.back(), 16 / bytes());
  isSureAligned = place && place->kind == Parameter::Scratch;
}

void splitIndex(tile::Builder &b, ElementEmitter &emitter, const Contraction &contraction, ArrayRef<unsigned> which,
                Value index, Values &loops) {
  linalg::GenericOp op = contraction.op;
  SmallVector<AffineExpr> extents = loopExtents(op);
  for (size_t i = which.size(); i-- > 1;) {
    Value extent = emitter.extent(extents[which[i]]);
    if (leastValue(extents[which[i]], op->getParentOfType<func::FuncOp>()) < 1)
      extent = b.createOrFold<arith::MaxSIOp>(extent, b.integer(1)); // nothing is read then, but this divides by it
    loops[which[i]] = b.rem(index, extent);
    index = b.div(index, extent);
  }
  if (!which.empty())
    loops[which.front()] = index;
}

Value readInput(tile::Builder &b, ElementEmitter &emitter, const Contraction &contraction, unsigned number,
                ArrayRef<Value> loops) {
  Value element = emitter.operand(contraction.op, number, loops);
  return element && !element.getType().isF32() ? b.createOrFold<arith::ExtFOp>(b.getF32Type(), element) : element;
}

//===- Results -----------------------------------------------------------===//

Values loopsOfStage(const Contraction &contraction, ArrayRef<Value> loops) {
  Values result;
  for (unsigned loop : contraction.stageLoops)
    result.push_back(loops[loop]);
  return result;
}

Values finishSum(ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                 ArrayRef<Value> loops, Value sum) {
  if (context.stage.op == contraction.op)
    return {sum};
  linalg::GenericOp op = contraction.op;
  emitter.give(op->getResult(0), sum);
  return emitter.evaluate(context.stage.op, loopsOfStage(contraction, loops));
}

void storeResults(ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                  ArrayRef<Value> loops, ArrayRef<Value> results) {
  Values ofStage = loopsOfStage(contraction, loops);
  for (const Store &store : context.stage.stores) {
    const unsigned number = cast<OpResult>(store.value).getResultNumber();
    emitter.store(store, results[number], emitter.written(context.stage.op, number, ofStage));
  }
}

LogicalResult finishElement(tile::Builder &b, ElementEmitter &emitter, const StageContext &context,
                            const Contraction &contraction, Value batch, Value row, Value column, Value sum) {
  linalg::GenericOp op = contraction.op;
  Values loops(op.getNumLoops());
  splitIndex(b, emitter, contraction, contraction.columns, column, loops);
  splitIndex(b, emitter, contraction, contraction.rows, row, loops);
  splitIndex(b, emitter, contraction, contraction.batch, batch, loops);
  Values results = finishSum(emitter, context, contraction, loops, sum);
  if (results.empty())
    return failure();
  storeResults(emitter, context, contraction, loops, results);
  return success();
}

int64_t columnsTogether(const StageContext &context, const Contraction &contraction) {
  const unsigned column = contraction.columns.back();
  auto extent = dyn_cast<AffineConstantExpr>(loopExtents(contraction.op)[column]);
  linalg::GenericOp op = context.stage.op;
  for (const Store &store : context.stage.stores) {
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(cast<OpResult>(store.value).getResultNumber()));
    const bool isAlongColumns = contraction.stageLoops[map.getDimPosition(map.getNumResults() - 1)] == column;
    if (!extent || !isAlongColumns || getElementTypeOrSelf(store.value).isInteger(1))
      return 1;
  }
  return extent.getValue() % 4 == 0 ? 4 : extent.getValue() % 2 == 0 ? 2 : 1;
}

SmallVector<unsigned> operandsAlongColumns(const StageContext &context, const Contraction &contraction) {
  SmallVector<unsigned> numbers;
  linalg::GenericOp op = context.stage.op;
  if (op == contraction.op)
    return numbers;
  const unsigned column = contraction.columns.back();
  const auto loop = unsigned(llvm::find(contraction.stageLoops, column) - contraction.stageLoops.begin());
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    auto type = dyn_cast<RankedTensorType>(operand->get().getType());
    if (!type || type.getElementType().isInteger(1) || !context.placement.find(operand->get()) ||
        op.getMatchingBlockArgument(operand).use_empty() || map.getNumResults() == 0)
      continue;
    const bool isAlongColumns =
        map.getResults().back() == getAffineDimExpr(loop, map.getContext()) &&
        llvm::none_of(map.getResults().drop_back(), [&](AffineExpr index) { return index.isFunctionOfDim(loop); });
    if (isAlongColumns && mlir::kiln::getExtents(type).back() == loopExtents(contraction.op)[column])
      numbers.push_back(operand->getOperandNumber());
  }
  return numbers;
}

Value areAligned(tile::Builder &b, ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                 int64_t elements) {
  Value all;
  auto ask = [&](Value tensor, Type element) {
    Value isAligned = tile::isMultiple(b, tensor, elements * element.getIntOrFloatBitWidth() / 8);
    all = all ? b.both(all, isAligned) : isAligned;
  };
  linalg::GenericOp op = context.stage.op;
  for (const Store &store : context.stage.stores)
    ask(emitter.tensorOf(store), getElementTypeOrSelf(store.value));
  for (unsigned number : operandsAlongColumns(context, contraction))
    ask(emitter.address(op, number), getElementTypeOrSelf(op->getOperand(number)));
  return all;
}

void loadTogether(ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                  ArrayRef<Values> loops) {
  SmallVector<Values> ofStage;
  for (const Values &ofColumn : loops)
    ofStage.push_back(loopsOfStage(contraction, ofColumn));
  for (unsigned number : operandsAlongColumns(context, contraction))
    emitter.loadTogether(context.stage.op, number, ofStage);
}

void storeTogether(ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                   ArrayRef<Value> loops, ArrayRef<Values> results) {
  Values ofStage = loopsOfStage(contraction, loops);
  for (const Store &store : context.stage.stores) {
    const unsigned number = cast<OpResult>(store.value).getResultNumber();
    Values elements;
    for (const Values &ofColumn : results)
      elements.push_back(ofColumn[number]);
    emitter.storeTogether(store, elements, emitter.written(context.stage.op, number, ofStage));
  }
}

} // namespace kiln::cuda
