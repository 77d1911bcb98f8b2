// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/StoredParts.h"

#include "compiler/dialect/ElementTypes.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

constexpr int64_t partAlignment = 64;

static TiledAttr getLayout(RankedTensorType type) { return dyn_cast_if_present<TiledAttr>(type.getEncoding()); }

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

SmallVector<StoredPart, 2> getStoredParts(RankedTensorType type) {
  TiledAttr layout = getLayout(type);
  if (!layout)
    return {{type, 0}};
  SmallVector<int64_t, 3> shape = layout.getStoredShape(type.getShape());
  SmallVector<StoredPart, 2> parts{{RankedTensorType::get(shape, getStoredElement(type)), 0}};
  if (layout.getStorage() && layout.getStorage().hasScales()) {
    auto scales = RankedTensorType::get({shape.front(), shape.back()}, type.getElementType());
    parts.push_back({scales, int64_t(llvm::alignTo(bytesOf(parts.front()), partAlignment))});
  }
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
