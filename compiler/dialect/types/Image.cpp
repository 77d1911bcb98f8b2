// SPDX-License-Identifier: Apache-2.0
//
// Result types of ops over the windows of an image.
#include "compiler/dialect/types/Infer.h"

namespace mlir::kiln {

/// Appends the number of windows along each axis of an image, and checks the rules of windows.
static LogicalResult appendWindows(const Check &check, RankedTensorType image, ArrayRef<int64_t> kernel,
                                   ArrayRef<int64_t> stride, ArrayRef<int64_t> padding, ArrayRef<int64_t> dilation,
                                   SmallVectorImpl<AffineExpr> &result) {
  if (stride.size() != 2 || padding.size() != 2 || dilation.size() != 2 || kernel.size() != 2)
    return check.report("window: wrong number of sizes; expected two for each property", Twine(stride.size()));
  auto least = [](ArrayRef<int64_t> pair) { return std::min(pair[0], pair[1]); };
  if (least(kernel) < 1)
    return check.fail(rules::window_c4, Twine(least(kernel)));
  if (least(stride) < 1 || least(dilation) < 1 || least(padding) < 0)
    return check.fail(rules::window_c1, "stride " + Twine(least(stride)) + ", dilation " + Twine(least(dilation)) +
                                            ", padding " + Twine(least(padding)));
  // Limits the numbers so that no arithmetic on them overflows.
  for (ArrayRef<int64_t> pair : {kernel, stride, padding, dilation})
    for (int64_t number : pair)
      if (!llvm::isInt<32>(number))
        return check.report("window: number is too large; expected at most 2147483647", Twine(number));
  SmallVector<AffineExpr> extents = getExtents(image);
  for (unsigned axis = 0; axis < 2; ++axis) {
    AffineExpr extent = extents[extents.size() - 3 + axis];
    AffineExpr room = canonicalExtent(extent + (2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1));
    if (auto bounds = check.bounds(room); bounds && bounds->min < 0)
      return check.fail(rules::window_c2, check.text(image));
    AffineExpr count = canonicalExtent(room.floorDiv(stride[axis]) + 1);
    bool isPolynomial = true;
    count.walk([&](AffineExpr part) { isPolynomial &= part.getKind() != AffineExprKind::FloorDiv; });
    if (!isPolynomial)
      return check.fail(rules::window_c3, check.text(extent), "a multiple of " + Twine(stride[axis]));
    result.push_back(count);
  }
  return success();
}

KILN_INFER(Conv2dOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 3)
    return check.fail(rules::conv2d_c1, check.text(x));
  if (weight.getRank() != 4 || !weight.hasStaticShape())
    return check.fail(rules::conv2d_c2, check.text(weight));
  int64_t groups = op.getGroups(), outputs = weight.getDimSize(0), channels;
  if (llvm::MulOverflow(weight.getDimSize(1), groups, channels))
    channels = -1; // no tensor has this extent
  if (!isConstant(getExtents(x).back(), channels))
    return check.fail(rules::conv2d_c3, check.text(getExtents(x).back()), Twine(channels));
  if (groups < 1 || outputs % groups != 0)
    return check.fail(rules::conv2d_c4, Twine(outputs), "a multiple of " + Twine(groups));
  if (op.getBias()) {
    RankedTensorType bias = tensorType(op.getBias());
    if (bias.getRank() != 1 || bias.getDimSize(0) != outputs)
      return check.fail(rules::conv2d_c5, check.text(bias), "[" + Twine(outputs) + "]");
    if (failed(check.sameElement(rules::conv2d_c6, {x, bias})))
      return failure();
  }
  if (failed(check.sameElement(rules::conv2d_c6, {x, weight})))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(x), result(extents.begin(), extents.end() - 3);
  if (failed(appendWindows(check, x, weight.getShape().drop_front(2), op.getStride(), op.getPadding(), op.getDilation(),
                           result)))
    return failure();
  result.push_back(getAffineConstantExpr(outputs, context));
  types.push_back(resultType(op, result, x.getElementType()));
  return success();
}

template <class Adaptor>
static LogicalResult inferPool(std::optional<Location> location, Adaptor op, SmallVectorImpl<Type> &types) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 3)
    return check.fail(rules::pool2d_c1, check.text(x));
  SmallVector<AffineExpr> extents = getExtents(x), result(extents.begin(), extents.end() - 3);
  if (failed(appendWindows(check, x, op.getKernel(), op.getStride(), op.getPadding(), {1, 1}, result)))
    return failure();
  for (auto [padding, kernel] : llvm::zip_equal(op.getPadding(), op.getKernel()))
    if (2 * padding > kernel)
      return check.fail(rules::pool2d_c3, Twine(padding), "at most half of " + Twine(kernel));
  result.push_back(extents.back());
  types.push_back(resultType(op, result, x.getElementType()));
  return success();
}

KILN_INFER(MaxPool2dOp) { return inferPool(location, op, types); }
KILN_INFER(AvgPool2dOp) { return inferPool(location, op, types); }

} // namespace mlir::kiln
