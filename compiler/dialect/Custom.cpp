// SPDX-License-Identifier: Apache-2.0
//
// kiln.custom, the call of a function that the program defines: its verifier, its signature and its derivative.
#include "compiler/dialect/Check.h"
#include "compiler/dialect/gradients/GradientBuilder.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::kiln {

ResultRange CustomOp::getOutputs() { return getResults().drop_back(getWorkspace() ? 1 : 0); }

Value CustomOp::getMemory() { return getWorkspace() ? getResults().back() : Value(); }

SmallVector<unsigned> CustomOp::getSymbolPositions() {
  llvm::SmallSetVector<unsigned, 4> positions;
  for (TypeRange types : {TypeRange(getOperandTypes()), TypeRange(getResultTypes())})
    for (Type type : types)
      for (AffineExpr extent : getExtents(cast<RankedTensorType>(type)))
        extent.walk([&](AffineExpr part) {
          if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
            positions.insert(symbol.getPosition());
        });
  return positions.takeVector();
}

LogicalResult CustomOp::verify() {
  Check check(*this);
  if (failed(check.extents(getOperandTypes())) || failed(check.extents(getResultTypes())))
    return failure();
  if (getInputs().empty() || getOutputs().empty())
    return check.report("custom: too few tensors; expected an operand and a result",
                        Twine(getInputs().size()) + " operands and " + Twine(getOutputs().size()) + " results");
  if (Value memory = getMemory()) {
    auto type = cast<RankedTensorType>(memory.getType());
    if (type.getRank() != 1 || !type.getElementType().isInteger(8) || !memory.use_empty())
      return check.report("custom: wrong workspace; expected unused bytes, i8 of rank 1", check.text(type));
  }
  return success();
}

/// The function gets all operands and the gradients of the floating-point results, and returns those of the
/// floating-point operands. It has a workspace of the same size.
KILN_GRADIENT(CustomOp) {
  auto isFloat = [](Value value) { return isa<FloatType>(rankedType(value).getElementType()); };
  SmallVector<Value> operands(getInputs());
  for (auto [result, gradient] : llvm::zip(getOutputs(), gradients))
    if (isFloat(result))
      operands.push_back(gradient);
  SmallVector<Type> types(TypeRange(ValueRange(llvm::filter_to_vector(getInputs(), isFloat))));
  if (Value memory = getMemory())
    types.push_back(memory.getType());
  ResultRange results = b.createAll<CustomOp>(types, *getDerivative(), operands, StringAttr(), getWorkspace());
  auto next = results.begin();
  return llvm::map_to_vector(getInputs(), [&](Value input) { return isFloat(input) ? Value(*next++) : Value(); });
}

} // namespace mlir::kiln
