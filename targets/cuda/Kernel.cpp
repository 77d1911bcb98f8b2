// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/Kernel.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kiln::cuda {

using namespace mlir;
using mlir::kiln::getExtents;

static LogicalResult checkFunction(func::FuncOp kernel) {
  if (failed(KernelFunction(kernel).verify()))
    return failure();
  if (kernel.getNumResults() == 0)
    return kernel.emitError() << "kernel function: no results; expected at least one";
  return success();
}

/// Whether elements are stored in row-major order without gaps: an encoding with one tile does not change that.
/// Weights that a pass has concatenated have such an encoding.
static bool isDense(RankedTensorType type) {
  auto tiled = dyn_cast_if_present<mlir::kiln::TiledAttr>(type.getEncoding());
  return !tiled || (tiled.isPlain() && tiled.getDim() == type.getRank() - 1 &&
                    tiled.getSize() == type.getDimSize(tiled.getDim()));
}

static LogicalResult checkTensor(Value value, KernelFunction kernel) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return success();
  if (!isDense(type))
    return emitError(value.getLoc()) << "target cuda: unsupported layout of a weight; expected a dense one, got "
                                     << type.getEncoding();
  if (failed(kernel.verifyExtents(value)))
    return failure();
  Type element = type.getElementType();
  const bool isKnown = element.isF32() || element.isF16() || element.isBF16() || element.isInteger(1) ||
                       element.isInteger(8) || element.isInteger(32);
  if (!isKnown)
    return emitError(value.getLoc()) << "the cuda target has no tensor of type " << type;
  return success();
}

static LogicalResult checkGeneric(linalg::GenericOp op) {
  for (auto [loop, extent] : llvm::enumerate(loopExtents(op)))
    if (!extent)
      return op.emitError()
             << "op 'linalg.generic': loop without an operand; expected one whose dimension has the size of loop "
             << loop;
  AffineMap first = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!map.isProjectedPermutation() || map.getNumResults() != op.getNumParallelLoops())
      return op.emitError()
             << "op 'linalg.generic': unsupported indexing map; expected outputs indexed by its parallel loops";
    if (op.getNumReductionLoops() && map != first)
      return op.emitError()
             << "op 'linalg.generic' with reduction loops: several indexing maps; expected outputs of one";
  }
  for (OpOperand &operand : op->getOpOperands())
    if (!op.getMatchingBlockArgument(&operand).use_empty() && operand.get().getDefiningOp<tensor::EmptyOp>())
      return op.emitError()
             << "op 'linalg.generic': operand is not initialised; expected initialised ones, got operand "
             << operand.getOperandNumber();
  return success();
}

static LogicalResult checkResults(func::FuncOp kernel) {
  const KernelFunction view(kernel);
  for (Value result : view.results()) {
    if (result.getDefiningOp<tensor::EmptyOp>() || !isa<RankedTensorType>(result.getType()))
      return kernel.emitError() << "kernel function: result is not computed; expected computed results";
    auto argument = dyn_cast<BlockArgument>(result);
    if (argument && llvm::is_contained(view.inPlace(), argument.getArgNumber() - view.numSymbols()))
      return kernel.emitError() << "kiln.inplace: argument is a result; expected arguments that are no results";
  }
  return success();
}

LogicalResult checkKernel(func::FuncOp kernel) {
  if (failed(checkFunction(kernel)))
    return failure();
  auto check = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value value) { return succeeded(checkTensor(value, kernel)); });
  };
  if (!check(kernel.getArguments()))
    return failure();
  for (Operation &op : kernel.getBody().front()) {
    if (!check(op.getResults()))
      return failure();
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (failed(checkGeneric(generic)))
        return failure();
      continue;
    }
    const bool isScalar = isa<arith::ArithDialect, math::MathDialect, affine::AffineDialect>(op.getDialect()) &&
                          llvm::none_of(op.getResultTypes(), llvm::IsaPred<ShapedType>);
    if (!isScalar && !isa<linalg::FillOp, tensor::EmptyOp, func::ReturnOp>(op))
      return op.emitError() << "the cuda target has no translation for op '" << op.getName() << "'";
  }
  return checkResults(kernel);
}

AffineMap operandMap(OpOperand &operand) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  const AffineExpr zero = getAffineConstantExpr(0, op->getContext()), one = getAffineConstantExpr(1, op->getContext());
  const SmallVector<AffineExpr> loops = loopExtents(op),
                                extents = getExtents(cast<RankedTensorType>(operand.get().getType()));
  SmallVector<AffineExpr> indices(map.getResults());
  unsigned loop = 0;
  for (auto [index, extent] : llvm::zip_equal(indices, extents)) {
    if (index != zero || extent != one)
      continue;
    while (loop < loops.size() && (loops[loop] != one || map.isFunctionOfDim(loop)))
      ++loop;
    if (loop < loops.size())
      index = getAffineDimExpr(loop++, op->getContext());
  }
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), indices, op->getContext());
}

int64_t leastValue(AffineExpr extent, func::FuncOp kernel) {
  auto bounds = KernelFunction(kernel).boundsOf(extent);
  return bounds ? bounds->min : 0;
}

int64_t largestValue(AffineExpr extent, func::FuncOp kernel) {
  auto bounds = KernelFunction(kernel).boundsOf(extent);
  return bounds ? bounds->max : int64_t(1) << 48;
}

int64_t mostElements(Type tensor, func::FuncOp kernel) {
  auto type = cast<RankedTensorType>(tensor);
  return largestValue(mlir::kiln::getProduct(getExtents(type), type.getContext()), kernel);
}

} // namespace kiln::cuda
