// SPDX-License-Identifier: Apache-2.0
//
// Folds: identities, and constants of few elements.
#include <cmath>
#include <numbers>

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {
namespace {

/// Constants with more elements than this are folded only if all of them are equal.
constexpr int64_t maxFoldedElements = 65536;

bool isSplat(Attribute attribute, double value) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!dense || !dense.isSplat())
    return false;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().convertToDouble() == value;
  return isa<IntegerType>(dense.getElementType()) && dense.getSplatValue<APInt>().getSExtValue() == value;
}

/// The elements as T: double for floating point, int64_t for integers. Of a splat only the one.
template <class T> SmallVector<T> readElements(DenseElementsAttr dense) {
  SmallVector<T> result;
  auto read = [&](auto value) {
    if constexpr (std::is_same_v<T, double>)
      result.push_back(value.convertToDouble());
    else
      result.push_back(value.getSExtValue());
  };
  using Stored = std::conditional_t<std::is_same_v<T, double>, APFloat, APInt>;
  if (dense.isSplat())
    read(dense.getSplatValue<Stored>());
  else
    for (const Stored &value : dense.getValues<Stored>())
      read(value);
  return result;
}

DenseElementsAttr makeConstant(RankedTensorType type, ArrayRef<double> values) {
  auto element = cast<FloatType>(type.getElementType());
  SmallVector<APFloat> stored;
  for (double value : values) {
    bool inexact;
    stored.emplace_back(value).convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  }
  return DenseElementsAttr::get(type, stored);
}

DenseElementsAttr makeConstant(RankedTensorType type, ArrayRef<int64_t> values) {
  unsigned width = type.getElementTypeBitWidth();
  SmallVector<APInt> stored;
  for (int64_t value : values)
    stored.emplace_back(width, static_cast<uint64_t>(value), /*isSigned=*/true, /*implicitTrunc=*/true);
  return DenseElementsAttr::get(type, stored);
}

/// The position in a constant of `shape` that the element at `position` of the broadcast `result` shape reads.
int64_t broadcastPosition(ArrayRef<int64_t> shape, ArrayRef<int64_t> result, int64_t position) {
  int64_t read = 0, stride = 1;
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t extent = result[result.size() - 1 - i], index = position % extent;
    position /= extent;
    if (i >= shape.size())
      break;
    int64_t own = shape[shape.size() - 1 - i];
    read += (own == 1 ? 0 : index) * stride;
    stride *= own;
  }
  return read;
}

template <class T, class Function>
DenseElementsAttr foldElements(RankedTensorType type, DenseElementsAttr lhs, DenseElementsAttr rhs, Function function) {
  SmallVector<T> left = readElements<T>(lhs), right = readElements<T>(rhs), result;
  int64_t count = lhs.isSplat() && rhs.isSplat() ? 1 : type.getNumElements();
  for (int64_t i = 0; i < count; ++i) {
    T a = left[lhs.isSplat() ? 0 : broadcastPosition(lhs.getType().getShape(), type.getShape(), i)];
    T b = right[rhs.isSplat() ? 0 : broadcastPosition(rhs.getType().getShape(), type.getShape(), i)];
    std::optional<T> value = function(a, b);
    if (!value)
      return {};
    result.push_back(*value);
  }
  return makeConstant(type, result);
}

/// `function` maps (a, b) of double or int64_t to an optional of the same.
template <class Function> OpFoldResult foldBinary(Type resultType, Attribute lhs, Attribute rhs, Function function) {
  auto type = cast<RankedTensorType>(resultType);
  auto left = dyn_cast_or_null<DenseElementsAttr>(lhs), right = dyn_cast_or_null<DenseElementsAttr>(rhs);
  if (!left || !right || !type.hasStaticShape())
    return {};
  if (type.getNumElements() > maxFoldedElements && !(left.isSplat() && right.isSplat()))
    return {};
  if (isa<FloatType>(type.getElementType()))
    return foldElements<double>(type, left, right, function);
  return foldElements<int64_t>(type, left, right, function);
}

template <class Op> OpFoldResult foldUnary(Op op, Attribute x, double (*function)(double)) {
  auto type = cast<RankedTensorType>(op.getType());
  auto dense = dyn_cast_or_null<DenseElementsAttr>(x);
  if (!dense || (type.getNumElements() > maxFoldedElements && !dense.isSplat()))
    return {};
  SmallVector<double> values = readElements<double>(dense);
  for (double &value : values)
    value = function(value);
  return makeConstant(type, values);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The operand, if the op does not change it and only its values matter.
OpFoldResult keep(Value operand, Value result) {
  return operand.getType() == result.getType() ? operand : OpFoldResult();
}

} // namespace

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===- Pointwise ---===//

OpFoldResult AddOp::fold(FoldAdaptor constants) {
  if (isSplat(constants.getRhs(), 0))
    if (OpFoldResult same = keep(getLhs(), getResult()))
      return same;
  return foldBinary(getType(), constants.getLhs(), constants.getRhs(),
                    [](auto a, auto b) { return std::optional(a + b); });
}

OpFoldResult SubOp::fold(FoldAdaptor constants) {
  if (isSplat(constants.getRhs(), 0))
    if (OpFoldResult same = keep(getLhs(), getResult()))
      return same;
  return foldBinary(getType(), constants.getLhs(), constants.getRhs(),
                    [](auto a, auto b) { return std::optional(a - b); });
}

OpFoldResult MulOp::fold(FoldAdaptor constants) {
  if (isSplat(constants.getRhs(), 1))
    if (OpFoldResult same = keep(getLhs(), getResult()))
      return same;
  return foldBinary(getType(), constants.getLhs(), constants.getRhs(),
                    [](auto a, auto b) { return std::optional(a * b); });
}

OpFoldResult DivOp::fold(FoldAdaptor constants) {
  if (isSplat(constants.getRhs(), 1))
    if (OpFoldResult same = keep(getLhs(), getResult()))
      return same;
  return foldBinary(getType(), constants.getLhs(), constants.getRhs(), [](auto a, auto b) {
    const bool isByZero = std::is_integral_v<decltype(b)> && b == 0;
    return std::optional(isByZero ? 0 : a / b);
  });
}

OpFoldResult MaximumOp::fold(FoldAdaptor constants) {
  if (getLhs() == getRhs())
    return getLhs();
  return foldBinary(getType(), constants.getLhs(), constants.getRhs(),
                    [](auto a, auto b) { return std::optional(a > b || a != a ? a : b); });
}

OpFoldResult ExpOp::fold(FoldAdaptor constants) { return foldUnary(*this, constants.getX(), std::exp); }
OpFoldResult LogOp::fold(FoldAdaptor constants) { return foldUnary(*this, constants.getX(), std::log); }
OpFoldResult SqrtOp::fold(FoldAdaptor constants) { return foldUnary(*this, constants.getX(), std::sqrt); }
OpFoldResult TanhOp::fold(FoldAdaptor constants) { return foldUnary(*this, constants.getX(), std::tanh); }
OpFoldResult SigmoidOp::fold(FoldAdaptor constants) { return foldUnary(*this, constants.getX(), sigmoid); }
OpFoldResult SiluOp::fold(FoldAdaptor constants) {
  return foldUnary(*this, constants.getX(), [](double x) { return x * sigmoid(x); });
}
OpFoldResult ReluOp::fold(FoldAdaptor constants) {
  if (getX().getDefiningOp<ReluOp>())
    return getX();
  return foldUnary(*this, constants.getX(), [](double x) { return x < 0 ? 0 : x; });
}
OpFoldResult GeluOp::fold(FoldAdaptor constants) {
  return foldUnary(*this, constants.getX(), [](double x) { return x * (1 + std::erf(x / std::numbers::sqrt2)) / 2; });
}
OpFoldResult GeluTanhOp::fold(FoldAdaptor constants) {
  return foldUnary(*this, constants.getX(), [](double x) {
    return x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))) / 2;
  });
}

//===- Shape ---===//

OpFoldResult ReshapeOp::fold(FoldAdaptor constants) {
  if (OpFoldResult same = keep(getX(), getResult()))
    return same;
  if (auto producer = getX().getDefiningOp<ReshapeOp>()) {
    getXMutable().assign(producer.getX());
    return getResult();
  }
  auto dense = dyn_cast_or_null<DenseElementsAttr>(constants.getX());
  if (dense && cast<ShapedType>(getType()).hasStaticShape())
    return dense.reshape(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult ExpandOp::fold(FoldAdaptor constants) {
  if (OpFoldResult same = keep(getX(), getResult()))
    return same;
  auto dense = dyn_cast_or_null<DenseElementsAttr>(constants.getX());
  if (dense && dense.isSplat() && cast<ShapedType>(getType()).hasStaticShape())
    return dense.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor constants) {
  ArrayRef<int64_t> permutation = getPermutation();
  if (llvm::equal(permutation, llvm::seq<int64_t>(permutation.size())))
    return keep(getX(), getResult());
  auto dense = dyn_cast_or_null<DenseElementsAttr>(constants.getX());
  auto type = cast<RankedTensorType>(getType());
  if (!dense || !type.hasStaticShape())
    return {};
  if (dense.isSplat())
    return dense.resizeSplat(type);
  if (type.getNumElements() > maxFoldedElements)
    return {};
  // The stride with which the result's axis i walks the constant.
  SmallVector<int64_t> strides(type.getRank());
  ArrayRef<int64_t> shape = dense.getType().getShape();
  for (int64_t i = 0; i < type.getRank(); ++i) {
    strides[i] = 1;
    for (int64_t axis = permutation[i] + 1; axis < type.getRank(); ++axis)
      strides[i] *= shape[axis];
  }
  auto values = dense.getValues<Attribute>();
  SmallVector<Attribute> result;
  for (int64_t position = 0; position < type.getNumElements(); ++position) {
    int64_t read = 0, rest = position;
    for (int64_t i = type.getRank() - 1; i >= 0; --i) {
      read += rest % type.getDimSize(i) * strides[i];
      rest /= type.getDimSize(i);
    }
    result.push_back(values[read]);
  }
  return DenseElementsAttr::get(type, result);
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? keep(getInputs().front(), getResult()) : OpFoldResult();
}

OpFoldResult SliceOp::fold(FoldAdaptor constants) {
  if (OpFoldResult same = keep(getX(), getResult()))
    return same;
  if (auto producer = getX().getDefiningOp<SliceOp>();
      producer && producer.getAxis() == getAxis() && !getAtEnd() && !producer.getAtEnd()) {
    setStart(getStart() + producer.getStart());
    getXMutable().assign(producer.getX());
    return getResult();
  }
  auto dense = dyn_cast_or_null<DenseElementsAttr>(constants.getX());
  if (dense && dense.isSplat() && cast<ShapedType>(getType()).hasStaticShape())
    return dense.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

} // namespace mlir::kiln
