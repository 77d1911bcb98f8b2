// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/FoldElements.h"

namespace mlir::kiln {

bool isSplat(Attribute attribute, double value) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!dense || !dense.isSplat())
    return false;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().convertToDouble() == value;
  return isa<IntegerType>(dense.getElementType()) && dense.getSplatValue<APInt>().getSExtValue() == value;
}

namespace {

/// Reads the elements as T: double for floating point, int64_t for integers. For a splat only the single element is
/// read.
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

/// Returns the position in a constant of `shape` that the element at `position` of the broadcast `result` shape reads.
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

template <class T>
OpFoldResult foldAs(RankedTensorType type, ArrayRef<DenseElementsAttr> operands, T (*function)(ArrayRef<T>)) {
  SmallVector<SmallVector<T>> elements = llvm::map_to_vector(operands, readElements<T>);
  const bool areSplats = llvm::all_of(operands, [](DenseElementsAttr operand) { return operand.isSplat(); });
  SmallVector<T> x(operands.size()), result;
  for (int64_t i = 0, count = areSplats ? 1 : type.getNumElements(); i < count; ++i) {
    for (auto [value, operand, all] : llvm::zip_equal(x, operands, elements))
      value = all[operand.isSplat() ? 0 : broadcastPosition(operand.getType().getShape(), type.getShape(), i)];
    result.push_back(function(x));
  }
  return makeConstant(type, result);
}

} // namespace

OpFoldResult foldElements(Type resultType, ArrayRef<Attribute> operands, const ElementFunction &function) {
  auto type = cast<RankedTensorType>(resultType);
  SmallVector<DenseElementsAttr> constants;
  bool areSplats = true;
  for (Attribute operand : operands) {
    auto dense = dyn_cast_or_null<DenseElementsAttr>(operand);
    if (!dense)
      return {};
    constants.push_back(dense);
    areSplats &= dense.isSplat();
  }
  if (!type.hasStaticShape() || (type.getNumElements() > maxFoldedElements && !areSplats))
    return {};
  if (isa<FloatType>(type.getElementType()))
    return foldAs<double>(type, constants, function.ofFloats);
  return function.ofIntegers ? foldAs<int64_t>(type, constants, function.ofIntegers) : OpFoldResult();
}

} // namespace mlir::kiln
