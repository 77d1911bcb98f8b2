// SPDX-License-Identifier: Apache-2.0
//
// Result types of transpose and concat.
#include "compiler/dialect/types/Infer.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::kiln {

KILN_INFER(TransposeOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)))
    return failure();
  SmallVector<int64_t> sorted(op.getPermutation());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(x.getRank()))) {
    auto axes = llvm::map_range(op.getPermutation(), [](int64_t axis) { return std::to_string(axis); });
    return check.fail(rules::transpose_c1, check.text(x) + " by <" + llvm::join(axes, ", ") + ">");
  }
  SmallVector<AffineExpr> extents = getExtents(x), result;
  for (int64_t axis : op.getPermutation())
    result.push_back(extents[axis]);
  types.push_back(resultType(op, result, x.getElementType()));
  return success();
}

KILN_INFER(ConcatOp) {
  Check check(location, op.getOperands());
  if (op.getInputs().empty())
    return check.report("concat: no operand; expected at least one", "none");
  SmallVector<RankedTensorType> inputs = llvm::map_to_vector(op.getInputs(), tensorType);
  if (failed(checkOperands(op, check)) || failed(check.sameElement(rules::concat_c1, inputs)))
    return failure();
  if (!llvm::all_equal(llvm::map_range(inputs, [](RankedTensorType type) { return type.getRank(); })))
    return check.fail(rules::concat_c1, check.text(inputs));
  if (failed(check.axis(rules::concat_c3, op.getAxis(), inputs[0])))
    return failure();
  SmallVector<AffineExpr> result = getExtents(inputs[0]);
  for (RankedTensorType input : ArrayRef(inputs).drop_front()) {
    SmallVector<AffineExpr> extents = getExtents(input);
    for (int64_t i = 0; i < input.getRank(); ++i)
      if (i != static_cast<int64_t>(op.getAxis()) && extents[i] != result[i])
        return check.fail(rules::concat_c2, check.text(inputs));
    result[op.getAxis()] = canonicalExtent(result[op.getAxis()] + extents[op.getAxis()]);
  }
  types.push_back(resultType(op, result, inputs[0].getElementType()));
  return success();
}

} // namespace mlir::kiln
