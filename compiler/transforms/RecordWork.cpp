// SPDX-License-Identifier: Apache-2.0
//
// Records the work of a kernel (FLOPs and bytes) on each call while its ops are still known: kernels of different ops
// may be merged later.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/StoredParts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_RECORDWORK
#include "compiler/transforms/Passes.h.inc"

namespace {

AffineExpr countBytes(RankedTensorType type) {
  MLIRContext *context = type.getContext();
  if (type.hasStaticShape())
    return getAffineConstantExpr(getStoredBytes(type), context);
  return getProduct(getExtents(type), context) * storedBytes(type.getElementType(), 1);
}

/// Whether the op reads only as many elements of the operand as its result has: of a table whose rows are selected by
/// indices, and of a tensor that it slices.
bool readsAPart(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<SliceOp>(op))
    return true;
  auto looksUp = dyn_cast<IndexOperandsInterface>(op);
  auto inKernel = dyn_cast<KernelOpInterface>(op);
  return looksUp && inKernel && inKernel.getKernelRole() == KernelRole::Lookup &&
         llvm::none_of(looksUp.getIndexOperands(),
                       [&](const IndexOperand &index) { return index.operand == use.get(); });
}

/// Returns an upper bound on the bytes that a kernel reads from an argument.
AffineExpr countRead(BlockArgument argument) {
  if (!llvm::all_of(argument.getUses(), readsAPart))
    return countBytes(cast<RankedTensorType>(argument.getType()));
  AffineExpr read = getAffineConstantExpr(0, argument.getContext());
  for (Operation *user : argument.getUsers())
    read = read + countBytes(cast<RankedTensorType>(user->getResult(0).getType()));
  return read;
}

/// Returns the FLOPs of contractions and the bytes, over the kernel's symbols.
AffineMap countWork(func::FuncOp kernel) {
  AffineExpr flops = getAffineConstantExpr(0, kernel.getContext()), bytes = flops;
  kernel.walk([&](KernelOpInterface op) {
    if (addsProducts(op.getKernelRole()))
      flops = flops + op.getFlops();
  });
  unsigned symbols = 0;
  for (BlockArgument argument : kernel.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      bytes = bytes + countRead(argument);
    else
      ++symbols;
  for (Type type : kernel.getResultTypes())
    bytes = bytes + countBytes(cast<RankedTensorType>(type));
  return AffineMap::get(0, symbols, {flops, bytes}, kernel.getContext());
}

void recordWork(CallOp call, func::FuncOp kernel) {
  call->setAttr(workAttrName, AffineMapAttr::get(countWork(kernel)));
  if (auto scopes = kernel->getAttrOfType<ArrayAttr>(scopesAttrName); scopes && !scopes.empty())
    call->setAttr(layerAttrName, scopes[0]);
}

struct RecordWork : impl::RecordWorkBase<RecordWork> {
  void runOnOperation() override {
    getOperation().walk(
        [&](CallOp call) { recordWork(call, getOperation().lookupSymbol<func::FuncOp>(call.getCallee())); });
  }
};

} // namespace
} // namespace mlir::kiln
