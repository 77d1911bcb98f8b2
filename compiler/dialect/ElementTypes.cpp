// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/ElementTypes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

using ::kiln::ElementKind, ::kiln::ElementType;

Type fromElementType(ElementType element, MLIRContext *context) {
  Builder builder(context);
  switch (element) {
#define KILN_ELEMENT_TYPE(name, NAME, file, kind, bits, digits, c_type, mlir)                                          \
  case ElementType::name:                                                                                              \
    return builder.mlir;
#include "kiln/element_types.def"
  }
  llvm_unreachable("the frontend checks element types");
}

std::optional<ElementType> toElementType(Type type) {
  for (size_t row = 0; row < ::kiln::element_type_count; ++row)
    if (auto element = static_cast<ElementType>(row); fromElementType(element, type.getContext()) == type)
      return element;
  return std::nullopt;
}

bool isElement(Type type) {
  auto element = toElementType(type);
  return element && !only_stored(*element);
}
bool isNumber(Type type) {
  auto element = toElementType(type);
  return element && isElement(type) && info(*element).kind != ElementKind::boolean;
}
bool isFloatingNumber(Type type) {
  auto element = toElementType(type);
  return element && floating(*element);
}

bool isHalfFloat(Type type) {
  auto element = toElementType(type);
  return element && half_float(*element);
}

Type computedType(Type tensor) {
  Type element = getElementTypeOrSelf(tensor);
  return isHalfFloat(element) ? fromElementType(ElementType::f32, tensor.getContext()) : element;
}

Type defaultAccumulatorType(Type tensor) {
  const bool isOfFloats = isFloatingNumber(getElementTypeOrSelf(tensor));
  return fromElementType(isOfFloats ? ElementType::f32 : ElementType::i32, tensor.getContext());
}

int64_t storedBytes(Type type, int64_t elements) {
  if (auto element = toElementType(type))
    return stored_bytes(*element, elements);
  return llvm::divideCeilSigned(elements * (type.isIndex() ? 64 : type.getIntOrFloatBitWidth()), 8);
}

} // namespace mlir::kiln
