// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/KernelFunction.h"

#include "compiler/dialect/KilnDialect.h"

namespace kiln {

using namespace mlir;
using mlir::kiln::Interval;

bool isKernel(func::FuncOp function) { return function->hasAttr(mlir::kiln::kernelAttrName); }

KernelFunction KernelFunction::of(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  return function ? function : op->getParentOfType<func::FuncOp>();
}

unsigned KernelFunction::numSymbols() const {
  return llvm::count_if(func::FuncOp(function).getArgumentTypes(), [](Type type) { return type.isIndex(); });
}

MutableArrayRef<BlockArgument> KernelFunction::tensors() const {
  return func::FuncOp(function).getArguments().drop_front(numSymbols());
}

OperandRange KernelFunction::results() const {
  return func::FuncOp(function).getBody().front().getTerminator()->getOperands();
}

SmallVector<Interval> KernelFunction::bounds() const { return mlir::kiln::getSymbolBounds(function); }

void KernelFunction::setBounds(ArrayRef<Interval> bounds) const {
  SmallVector<int64_t> numbers;
  for (Interval each : bounds)
    numbers.append({each.min, each.max});
  function->setAttr(mlir::kiln::boundsAttrName, DenseI64ArrayAttr::get(function->getContext(), numbers));
}

std::optional<Interval> KernelFunction::boundsOf(AffineExpr extent) const {
  return mlir::kiln::getBounds(extent, bounds());
}

ArrayRef<int64_t> KernelFunction::inPlace() const {
  auto numbers = function->getAttrOfType<DenseI64ArrayAttr>(mlir::kiln::inplaceAttrName);
  return numbers ? numbers.asArrayRef() : ArrayRef<int64_t>();
}

bool KernelFunction::isWeight(unsigned tensor) const {
  return bool(func::FuncOp(function).getArgAttr(numSymbols() + tensor, mlir::kiln::weightAttrName));
}

bool KernelFunction::isBatchInvariant() const { return function->hasAttr(mlir::kiln::batchInvariantAttrName); }

bool isBatchInvariant(Operation *inKernel) { return KernelFunction::of(inKernel).isBatchInvariant(); }

LogicalResult KernelFunction::verify() const {
  func::FuncOp kernel = function;
  if (kernel.isExternal() || !kernel.getBody().hasOneBlock())
    return kernel.emitError() << "kernel function: wrong body; expected one of one block";
  auto bounds = kernel->getAttrOfType<DenseI64ArrayAttr>(mlir::kiln::boundsAttrName);
  const unsigned symbols = numSymbols(), given = bounds ? bounds.size() / 2 : 0;
  if (given != symbols || !isKernel(kernel))
    return kernel.emitError() << "kernel function: wrong attributes; expected kiln.kernel and kiln.bounds with two "
                                 "integers an index argument, got "
                              << symbols << " index arguments and bounds for " << given;
  return success();
}

LogicalResult KernelFunction::verifyExtents(Value tensor) const {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  const unsigned symbols = numSymbols();
  if (!type || (mlir::kiln::hasExtents(type) && mlir::kiln::getNumSymbols(TypeRange(type)) <= symbols))
    return success();
  return emitError(tensor.getLoc())
         << "kernel function: unknown dimensions; expected tensors whose dimensions are stated over its " << symbols
         << " index arguments, got " << type;
}

//===- Loops -------------------------------------------------------------===//

static AffineExpr extentOf(RankedTensorType type, unsigned dimension) {
  return type.isDynamicDim(dimension) ? mlir::kiln::getExtents(type)[dimension]
                                      : getAffineConstantExpr(type.getDimSize(dimension), type.getContext());
}

SmallVector<AffineExpr> loopExtents(linalg::GenericOp op) {
  SmallVector<AffineExpr> extents(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.get().getType()))
      for (auto [i, index] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
        if (auto loop = dyn_cast<AffineDimExpr>(index); loop && !extents[loop.getPosition()])
          extents[loop.getPosition()] = extentOf(type, i);
  return extents;
}

AffineExpr loopExtent(linalg::GenericOp op, unsigned loop) {
  for (OpOperand &operand : op->getOpOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.get().getType()))
      for (auto [i, index] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(index); dim && dim.getPosition() == loop)
          return extentOf(type, i);
  return {};
}

} // namespace kiln
