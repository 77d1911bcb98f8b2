// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the ops that kernel formation introduces.
#include "compiler/dialect/Check.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::kiln;

/// Whether rank, element type, static dimensions and layout agree. Symbols differ between a kernel and its caller.
static bool agree(Type actual, Type formal) {
  auto lhs = dyn_cast<RankedTensorType>(actual), rhs = dyn_cast<RankedTensorType>(formal);
  return lhs && rhs && lhs.getShape() == rhs.getShape() && lhs.getElementType() == rhs.getElementType() &&
         dyn_cast_or_null<TiledAttr>(lhs.getEncoding()) == dyn_cast_or_null<TiledAttr>(rhs.getEncoding());
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!kernel || !kernel->hasAttr(kernelAttrName))
    return emitOpError() << "callee is no kernel; expected a kernel function, got " << getCalleeAttr();
  Check check(*this);
  if (failed(check.extents(getOperandTypes())) || failed(check.extents(getResultTypes())))
    return failure();
  FunctionType type = kernel.getFunctionType();
  size_t indices = llvm::count_if(type.getInputs(), [](Type input) { return input.isIndex(); });
  if (getExtents().size() != indices)
    return emitOpError() << "wrong number of extents; expected " << indices << ", got " << getExtents().size();
  if (getArguments().size() != type.getNumInputs() - indices || getNumResults() != type.getNumResults())
    return emitOpError() << "wrong number of tensors or results; expected " << type.getNumInputs() - indices << " and "
                         << type.getNumResults() << ", got " << getArguments().size() << " and " << getNumResults();
  for (auto [actual, formal] : llvm::zip_equal(getArguments().getTypes(), type.getInputs().drop_front(indices)))
    if (!agree(actual, formal))
      return emitOpError() << "wrong type of an argument; expected " << formal << ", got " << actual;
  for (auto [actual, formal] : llvm::zip_equal(getResultTypes(), type.getResults()))
    if (!agree(actual, formal))
      return emitOpError() << "wrong type of a result; expected " << formal << ", got " << actual;
  return success();
}

LogicalResult SinusoidOp::verify() {
  Check check(*this);
  auto positions = cast<RankedTensorType>(getPositions().getType()),
       table = cast<RankedTensorType>(getTable().getType()), result = cast<RankedTensorType>(getResult().getType());
  if (failed(check.extents({positions, table, result})))
    return failure();
  if (table.getRank() != 2 || table.getDimSize(0) != 3)
    return check.report("sinusoid: wrong shape of the table; expected [3, width]", check.text(table));
  SmallVector<AffineExpr> extents = getExtents(positions);
  extents.push_back(getExtents(table).back());
  if (getExtents(result) != extents)
    return check.report("sinusoid: wrong shape of the result", check.text(result), check.text(extents));
  return success();
}
