// SPDX-License-Identifier: Apache-2.0
//
// Folds of data movement ops; those of elementwise ops are in FoldElements.h.
#include "compiler/dialect/FoldElements.h"

#include "compiler/dialect/Extents.h"

namespace mlir::kiln {

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

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
  // The stride in the constant of the result's axis i.
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
