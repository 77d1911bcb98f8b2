// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/StoredParts.h"

#include "compiler/dialect/ElementTypes.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

constexpr int64_t partAlignment = 64;

static TiledAttr getLayout(RankedTensorType type) { return dyn_cast_if_present<TiledAttr>(type.getEncoding()); }

bool hasOffsets(TiledAttr layout) { return layout.isVnni() && layout.getInterleave() == 4; }

StorageAttr getStorage(RankedTensorType type) {
  TiledAttr layout = getLayout(type);
  return layout ? layout.getStorage() : StorageAttr();
}

Type getStoredElement(RankedTensorType type) {
  StorageAttr storage = getStorage(type);
  return storage ? storage.getElement() : type.getElementType();
}

static int64_t bytesOf(const StoredPart &part) {
  return storedBytes(part.type.getElementType(), part.type.getNumElements());
}

static void append(SmallVector<StoredPart, 3> &parts, ArrayRef<int64_t> shape, Type element) {
  const int64_t end = parts.empty() ? 0 : parts.back().offset + bytesOf(parts.back());
  parts.push_back({RankedTensorType::get(shape, element), int64_t(llvm::alignTo(end, partAlignment))});
}

SmallVector<StoredPart, 3> getStoredParts(RankedTensorType type) {
  TiledAttr layout = getLayout(type);
  if (!layout)
    return {{type, 0}};
  const SmallVector<int64_t, 3> shape = layout.getStoredShape(type.getShape());
  SmallVector<StoredPart, 3> parts;
  StorageAttr storage = layout.getStorage();
  if (storage && storage.isGrouped()) {
    MLIRContext *context = type.getContext();
    const int64_t groups = shape[1] / storage.getGroup();
    append(parts, {shape[0], shape[1] / elementsOfWord, shape[2]}, IntegerType::get(context, 32));
    append(parts, {shape[0], groups, shape[2]}, Float16Type::get(context));
    if (storage.getZero())
      append(parts, {shape[0], groups, shape[2]}, IntegerType::get(context, 8));
    return parts;
  }
  Builder builder(type.getContext());
  append(parts, shape, layout.isVnni() ? builder.getIntegerType(8 * layout.getInterleave()) : getStoredElement(type));
  if (storage && storage.hasScales())
    append(parts, {shape.front(), shape.back()}, type.getElementType());
  if (hasOffsets(layout))
    append(parts, {shape.front(), shape.back()}, builder.getI32Type());
  return parts;
}

SmallVector<Type> expandParts(TypeRange types) {
  SmallVector<Type> expanded;
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      expanded.push_back(type);
      continue;
    }
    for (const StoredPart &part : getStoredParts(tensor))
      expanded.push_back(part.type);
  }
  return expanded;
}

int64_t getStoredBytes(RankedTensorType type) {
  StoredPart last = getStoredParts(type).back();
  return last.offset + bytesOf(last);
}

} // namespace mlir::kiln
