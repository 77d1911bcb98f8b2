// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/StoredParts.h"

#include "compiler/dialect/ElementTypes.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

static TiledAttr getLayout(RankedTensorType type) { return dyn_cast_if_present<TiledAttr>(type.getEncoding()); }

const ::kiln::Format &getFormat(StorageAttr storage) {
  const ::kiln::Format *format =
      ::kiln::find_format(*toElementType(storage.getElement()), storage.getGroup(), storage.getZero());
  assert(format && "the attribute's verifier looks it up");
  return *format;
}

int64_t getWhole(StorageAttr storage) { return kiln_format_whole(&getFormat(storage), uint32_t(storage.getGroup())); }

uint32_t getPlacementGroup(TiledAttr layout) {
  return layout.isVnni() ? layout.getInterleave() : layout.getStorage().getGroup();
}

std::array<kiln_format_array_t, KILN_FORMAT_ARRAYS> getFormatArrays(TiledAttr layout) {
  std::array<kiln_format_array_t, KILN_FORMAT_ARRAYS> arrays{};
  kiln_format_arrays(&getFormat(layout.getStorage()), getPlacementGroup(layout), arrays.data());
  return arrays;
}

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
  parts.push_back({RankedTensorType::get(shape, element), int64_t(llvm::alignTo(end, KILN_FORMAT_ALIGNMENT))});
}

SmallVector<StoredPart, 3> getStoredParts(RankedTensorType type) {
  TiledAttr layout = getLayout(type);
  if (!layout)
    return {{type, 0}};
  const SmallVector<int64_t, 3> shape = layout.getStoredShape(type.getShape());
  SmallVector<StoredPart, 3> parts;
  StorageAttr storage = layout.getStorage();
  if (!storage) {
    append(parts, shape, type.getElementType());
    return parts;
  }
  MLIRContext *context = type.getContext();
  const ::kiln::Format &format = getFormat(storage);
  for (auto [number, array] : llvm::enumerate(getFormatArrays(layout))) {
    if (array.bytes == 0)
      continue;
    // Code that reads several numbers or scales in an item, and small floats, takes their bits from integers.
    const unsigned bits = 8 * array.bytes;
    Type element = IntegerType::get(context, bits);
    const uint8_t scale = number == 2 ? format.outer : format.scale;
    if (number == 0 && array.each == 1 && isElement(storage.getElement()))
      element = storage.getElement();
    else if (number > 0 && scale != KILN_ROW_NONE)
      if (Type one = fromElementType(static_cast<::kiln::ElementType>(scale), context);
          isElement(one) && one.getIntOrFloatBitWidth() == bits)
        element = one;
    const auto items = int64_t(kiln_format_items(&array, layout.kExtentOf(type.getShape())));
    if (array.each)
      append(parts, {shape.front(), items, shape.back()}, element);
    else
      append(parts, {shape.front(), shape.back()}, element);
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
