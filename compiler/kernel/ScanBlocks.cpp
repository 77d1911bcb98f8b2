// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/ScanBlocks.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/Extents.h"
#include "compiler/kernel/KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kiln {

using namespace mlir;
using mlir::kiln::ScanOp;

/// Limits of a scan that is one task: bytes of states and values, and points of the loops of an iteration.
constexpr int64_t mostBytes = 64 << 10, mostPoints = 16 << 10;
/// A block of the outermost axis that fits the L1 cache is preferred to smaller blocks.
constexpr int64_t wantedBytes = 24 << 10;

ScanOp scanOf(func::FuncOp kernel) {
  if (kernel.isExternal())
    return {};
  auto scans = kernel.getBody().front().getOps<ScanOp>();
  return scans.empty() ? ScanOp() : *scans.begin();
}

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether the value is computed by the task itself, so that it has only the task's block.
bool isOfTask(ScanOp scan, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &scan.getBody().front() && argument.getArgNumber() < scan.getInits().size();
  return isa<linalg::GenericOp>(value.getDefiningOp());
}

/// Propagates the divided axis through the body. Copies are cheap enough to try another axis.
class Divider {
public:
  Divider(ScanOp scan, AffineExpr extent) : scan(scan), extent(extent) {
    yieldedAxes.resize(scan.getBody().front().getTerminator()->getNumOperands());
  }

  /// Divides the number-th yielded value along the axis, and all that follows from that.
  bool divide(unsigned number, unsigned axis) {
    Value value = yieldedValue(number);
    if (axis >= unsigned(typeOf(value).getRank()) || mlir::kiln::getExtents(typeOf(value))[axis] != extent)
      return false;
    yieldedAxes[number] = axis;
    if (number < scan.getInits().size() && !assign(scan.getBody().getArgument(number), axis))
      return false;
    return (!isOfTask(scan, value) || assign(value, axis)) && propagate();
  }

  /// Divides the yielded values that are left.
  bool complete() {
    for (unsigned number = 0; number < yieldedAxes.size(); ++number) {
      bool isDivided = yieldedAxes[number].has_value();
      for (unsigned axis = 0; !isDivided && axis < unsigned(typeOf(yieldedValue(number)).getRank()); ++axis) {
        Divider trial = *this;
        isDivided = trial.divide(number, axis);
        if (isDivided)
          *this = std::move(trial);
      }
      if (!isDivided)
        return false;
    }
    return true;
  }

  ScanBlocks take() {
    ScanBlocks blocks{std::move(axes), std::move(loops), {}, extent, 0};
    for (std::optional<unsigned> axis : yieldedAxes)
      blocks.yielded.push_back(*axis);
    return blocks;
  }

private:
  Value yieldedValue(unsigned number) { return scan.getBody().front().getTerminator()->getOperand(number); }

  bool assign(Value value, unsigned axis) {
    auto [found, isNew] = axes.try_emplace(value, axis);
    if (isNew)
      pending.push_back(value);
    return found->second == axis && mlir::kiln::getExtents(typeOf(value))[axis] == extent;
  }

  bool propagate() {
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (!visit(value, axes.at(value)))
        return false;
    }
    return true;
  }

  bool visit(Value value, unsigned axis) {
    if (auto op = value.getDefiningOp<linalg::GenericOp>();
        op && !divideLoop(op, op.getIndexingMapMatchingResult(cast<OpResult>(value)).getResult(axis)))
      return false;
    for (OpOperand &use : value.getUses()) {
      if (isa<mlir::kiln::YieldOp>(use.getOwner())) {
        const unsigned number = use.getOperandNumber();
        if (yieldedAxes[number].value_or(axis) != axis)
          return false;
        yieldedAxes[number] = axis;
        if (number < scan.getInits().size() && !assign(scan.getBody().getArgument(number), axis))
          return false;
      } else if (auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
                 !op || !divideLoop(op, op.getMatchingIndexingMap(&use).getResult(axis))) {
        return false;
      }
    }
    // What is carried to the next iteration has the axis of what was carried to this one.
    auto carried = dyn_cast<BlockArgument>(value);
    return !carried || carryBack(carried.getArgNumber(), axis);
  }

  bool carryBack(unsigned number, unsigned axis) {
    if (yieldedAxes[number].value_or(axis) != axis)
      return false;
    yieldedAxes[number] = axis;
    return !isOfTask(scan, yieldedValue(number)) || assign(yieldedValue(number), axis);
  }

  bool divideLoop(linalg::GenericOp op, AffineExpr index) {
    auto loop = dyn_cast<AffineDimExpr>(index);
    if (!loop || op.getIteratorTypesArray()[loop.getPosition()] != utils::IteratorType::parallel)
      return false;
    auto [found, isNew] = loops.try_emplace(op, loop.getPosition());
    if (!isNew)
      return found->second == loop.getPosition();
    for (OpResult result : op->getResults())
      if (!assignIndexed(result, op.getIndexingMapMatchingResult(result), loop))
        return false;
    for (OpOperand *input : op.getDpsInputOperands())
      if (isOfTask(scan, input->get()) && !assignIndexed(input->get(), op.getMatchingIndexingMap(input), loop))
        return false;
    return true;
  }

  /// Divides a value of the task along the axis that the loop indexes, if it does.
  bool assignIndexed(Value value, AffineMap map, AffineDimExpr loop) {
    for (auto [axis, index] : llvm::enumerate(map.getResults())) {
      if (index == loop && !assign(value, axis))
        return false;
      if (index != loop && index.isFunctionOfDim(loop.getPosition()))
        return false;
    }
    return true;
  }

  ScanOp scan;
  AffineExpr extent;
  llvm::DenseMap<Value, unsigned> axes;
  llvm::DenseMap<Operation *, unsigned> loops;
  SmallVector<std::optional<unsigned>> yieldedAxes;
  SmallVector<Value> pending;
};

/// Whether the op of a region has code. Conversions to integers and divisions of integers are left to others, since
/// LLVM leaves some of their results undefined.
bool hasCode(Operation &op) {
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op.getOperandTypes()), SmallVector<Type>(op.getResultTypes())))
    if (!type.isIndex() && !type.isF32() && !type.isInteger(32) && !type.isInteger(8) && !type.isInteger(1))
      return false;
  if (isa<arith::DivSIOp, arith::RemSIOp>(op))
    return op.getResult(0).getType().isIndex();
  return isa<linalg::IndexOp, linalg::YieldOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
             arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, arith::CmpFOp, arith::CmpIOp, arith::SelectOp,
             arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::BitcastOp,
             arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp, arith::IndexCastOp,
             arith::ConstantOp, math::ExpOp, math::ExpM1Op, math::Exp2Op, math::LogOp, math::Log1pOp, math::TanhOp,
             math::ErfOp, math::SqrtOp, math::RsqrtOp, math::AbsFOp, math::FmaOp>(op);
}

bool isSupportedTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return true;
  Type element = tensor.getElementType();
  return (element.isF32() || element.isInteger(32) || element.isInteger(8) || element.isInteger(1)) &&
         !isa_and_nonnull<mlir::kiln::TiledAttr>(tensor.getEncoding());
}

bool hasCode(linalg::GenericOp op, bool isExpanded) {
  for (Value output : op.getDpsInits()) {
    auto fill = output.getDefiningOp<linalg::FillOp>();
    if (fill ? !fill.getInputs()[0].getDefiningOp<arith::ConstantOp>() : !output.getDefiningOp<tensor::EmptyOp>())
      return false;
    if (!fill && op.getNumReductionLoops() > 0)
      return false;
  }
  return llvm::all_of(loopExtents(op), [](AffineExpr extent) { return bool(extent); }) &&
         (isExpanded || llvm::all_of(*op.getBody(), [](Operation &inner) { return hasCode(inner); }));
}

/// Whether each op of the body has code.
bool hasCode(ScanOp scan, bool isExpanded) {
  auto kernel = scan->getParentOfType<func::FuncOp>();
  if (scan.getUntil() || scan.getLayers() || scan.getAhead() > 0 ||
      !llvm::all_of(kernel.getArgumentTypes(), isSupportedTensor) ||
      !llvm::all_of(kernel.getResultTypes(), isSupportedTensor))
    return false;
  for (Operation &op : scan.getBody().front().without_terminator()) {
    if (!llvm::all_of(op.getResultTypes(), isSupportedTensor))
      return false;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic ? !hasCode(generic, isExpanded)
                : !isa<linalg::FillOp, tensor::EmptyOp, arith::ConstantOp>(op) &&
                      !(op.getNumResults() == 1 && op.getResult(0).getType().isIndex()))
      return false;
  }
  return llvm::all_of(scan.getBody().front().getTerminator()->getOperands(),
                      [&](Value value) { return isa<BlockArgument>(value) || isOfTask(scan, value); });
}

class Measure {
public:
  explicit Measure(ScanOp scan) : scan(scan), kernel(scan->getParentOfType<func::FuncOp>()) {}

  /// Returns the most bytes of what a task stores, for an extent of 1 of the axes.
  std::optional<int64_t> bytes(const llvm::DenseMap<Value, unsigned> &axes) const {
    int64_t sum = 0;
    auto add = [&](Value value) {
      SmallVector<AffineExpr> extents = mlir::kiln::getExtents(typeOf(value));
      if (auto axis = axes.find(value); axis != axes.end())
        extents.erase(extents.begin() + axis->second);
      std::optional<int64_t> elements = most(extents);
      if (elements)
        sum += *elements * mlir::kiln::storedBytes(typeOf(value).getElementType(), 1);
      return elements.has_value() && sum < (int64_t(1) << 30);
    };
    for (BlockArgument state : scan.getBody().getArguments().take_front(scan.getInits().size()))
      if (!add(state))
        return std::nullopt;
    for (linalg::GenericOp op : scan.getBody().getOps<linalg::GenericOp>())
      for (OpResult result : op->getResults())
        if (!add(result))
          return std::nullopt;
    return sum;
  }

  std::optional<int64_t> points() const {
    int64_t sum = 0;
    for (linalg::GenericOp op : scan.getBody().getOps<linalg::GenericOp>()) {
      std::optional<int64_t> count = most(loopExtents(op));
      if (!count)
        return std::nullopt;
      sum += *count;
    }
    return sum;
  }

private:
  std::optional<int64_t> most(ArrayRef<AffineExpr> extents) const {
    auto bounds = kernel.boundsOf(mlir::kiln::getProduct(extents, scan.getContext()));
    if (!bounds || bounds->max > (int64_t(1) << 30))
      return std::nullopt;
    return bounds->max;
  }

  mutable ScanOp scan;
  KernelFunction kernel;
};

} // namespace

std::optional<ScanBlocks> findScanBlocks(ScanOp scan, bool isExpanded) {
  if (!hasCode(scan, isExpanded))
    return std::nullopt;
  const Measure measure(scan);
  std::optional<ScanBlocks> best;
  Value first = scan.getBody().front().getTerminator()->getOperand(0);
  const auto rank = unsigned(typeOf(first).getRank());
  for (unsigned axis = 0; axis < rank; ++axis) {
    const AffineExpr extent = mlir::kiln::getExtents(typeOf(first))[axis];
    Divider divider(scan, extent);
    if (mlir::kiln::isConstant(extent, 1) || !divider.divide(0, axis) || !divider.complete())
      continue;
    ScanBlocks blocks = divider.take();
    std::optional<int64_t> bytes = measure.bytes(blocks.axes);
    if (!bytes || *bytes > mostBytes || (best && (best->bytes <= wantedBytes || best->bytes <= *bytes)))
      continue;
    blocks.bytes = std::max<int64_t>(*bytes, 1);
    best = std::move(blocks);
  }
  if (best)
    return best;
  std::optional<int64_t> bytes = measure.bytes(llvm::DenseMap<Value, unsigned>()), points = measure.points();
  if (!bytes || *bytes > mostBytes || !points || *points > mostPoints)
    return std::nullopt;
  ScanBlocks whole;
  whole.bytes = std::max<int64_t>(*bytes, 1);
  return whole;
}

} // namespace kiln
