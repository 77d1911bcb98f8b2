// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/Workload.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/StoredParts.h"
#include "compiler/kernel/Attention.h"
#include "compiler/kernel/CumulativeSum.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/kernel/MaskedShares.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <algorithm>

namespace kiln {

using namespace mlir;

std::vector<int64_t> shapeOf(RankedTensorType type, ArrayRef<int64_t> extents) {
  std::vector<int64_t> shape;
  for (AffineExpr extent : mlir::kiln::getExtents(type))
    shape.push_back(mlir::kiln::evaluateExtent(extent, extents));
  return shape;
}

static int64_t count(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  return elements;
}

int64_t storedBytes(RankedTensorType type, ArrayRef<int64_t> extents) {
  return type.hasStaticShape() ? mlir::kiln::getStoredBytes(type)
                               : mlir::kiln::storedBytes(type.getElementType(), count(shapeOf(type, extents)));
}

//===- Work --------------------------------------------------------------===//

std::vector<int64_t> loopExtents(linalg::GenericOp op, ArrayRef<int64_t> extents) {
  std::vector<int64_t> loops;
  for (AffineExpr extent : loopExtents(op))
    loops.push_back(extent ? mlir::kiln::evaluateExtent(extent, extents) : 1);
  return loops;
}

static int operationsOf(Operation &op) {
  if (op.getNumResults() != 1 || !isa<FloatType>(op.getResult(0).getType()))
    return 0;
  if (isa<math::FmaOp>(op))
    return 2;
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::MaximumFOp, arith::MaxNumFOp,
             arith::MinimumFOp, arith::MinNumFOp, math::SqrtOp>(op);
}

/// Returns the most bytes of the argument that the kernel's loops can touch: a look-up reads few rows of a table.
static double touchedBytes(BlockArgument argument, ArrayRef<int64_t> extents) {
  auto type = cast<RankedTensorType>(argument.getType());
  int64_t loads = 0;
  for (Operation *user : argument.getUsers()) {
    auto op = dyn_cast<linalg::GenericOp>(user);
    if (!op)
      op = user->getParentOfType<linalg::GenericOp>();
    loads += op ? count(loopExtents(op, extents)) : count(shapeOf(type, extents));
  }
  return double(
      std::min(storedBytes(type, extents), mlir::kiln::storedBytes(mlir::kiln::getStoredElement(type), loads)));
}

Work measureWork(func::FuncOp function, ArrayRef<int64_t> extents) {
  const DecomposedKernel decomposed(function);
  func::FuncOp kernel = decomposed.get();
  Work work;
  llvm::DenseMap<Operation *, double> shares = findMaskedShares(decomposed, extents);
  kernel.walk([&](linalg::GenericOp op) {
    int operations = 0;
    for (Operation &inner : *op.getBody())
      operations += operationsOf(inner);
    const std::vector<int64_t> loops = loopExtents(op, extents);
    double points = double(count(loops));
    if (asCumulativeSum(op) && points > 0) // each element is added once, not once for each later element
      points /= double(loops.back());
    if (auto scan = op->getParentOfType<mlir::kiln::ScanOp>())
      points *= double(mlir::kiln::evaluateExtent(scan.getTripCount(), extents));
    work.operations += shares.lookup_or(op, 1.0) * double(operations) * points;
  });
  for (Type result : kernel.getResultTypes())
    work.bytesWritten += double(storedBytes(cast<RankedTensorType>(result), extents));
  for (BlockArgument argument : kernel.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      work.bytesRead += touchedBytes(argument, extents);
  return work;
}

//===- Integer arguments -------------------------------------------------===//

namespace {

/// Follows an integer through a region to the ops that limit it.
class LimitFinder {
public:
  LimitFinder(ArrayRef<int64_t> extents) : extents(extents) {}

  void visit(Value value) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto generic = dyn_cast<linalg::GenericOp>(user)) {
        visit(generic.getBody()->getArgument(use.getOperandNumber()));
      } else if (auto extract = dyn_cast<tensor::ExtractOp>(user)) {
        if (unsigned number = use.getOperandNumber())
          limitTo(shapeOf(extract.getTensor().getType(), extents)[number - 1]);
        else
          visit(extract.getResult());
      } else if (isa<arith::CmpIOp>(user)) {
        for (int64_t extent : loopExtents(user->getParentOfType<linalg::GenericOp>(), extents))
          compared = std::max(compared, extent + 1);
      } else if (isa<arith::IndexCastOp, arith::MaxSIOp, arith::MinSIOp>(user)) {
        visit(user->getResult(0));
      }
    }
  }

  std::pair<int64_t, int64_t> range() const {
    if (indexed)
      return {0, indexed};
    return {(compared + 1) / 2, std::max<int64_t>(compared, 2)};
  }

private:
  void limitTo(int64_t extent) { indexed = indexed ? std::min(indexed, extent) : extent; }

  ArrayRef<int64_t> extents;
  int64_t indexed = 0, compared = 0;
};

} // namespace

std::pair<int64_t, int64_t> integerRange(func::FuncOp kernel, unsigned argument, ArrayRef<int64_t> extents) {
  const DecomposedKernel decomposed(kernel);
  LimitFinder finder(extents);
  finder.visit(decomposed.get().getArgument(argument));
  return finder.range();
}

} // namespace kiln
