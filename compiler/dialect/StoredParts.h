// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a tensor in memory: one, or several where a weight's storage format has scales. Kernels take a pointer
// for each; in entry-point code and packed weights they are stored consecutively.
#pragma once

#include <array>

#include "compiler/dialect/KilnDialect.h"
#include "kiln/storage.h"

namespace mlir::kiln {

/// One of the arrays: dense, in row-major order.
struct StoredPart {
  RankedTensorType type;
  int64_t offset = 0; // bytes from the first part
};

/// The number of 4-bit elements that are packed in one i32.
constexpr int64_t elementsOfWord = KILN_WORD_ELEMENTS;

/// Returns the row of formats.def of a storage format.
const ::kiln::Format &getFormat(StorageAttr storage);
/// Returns the arrays of the row in this layout, which has a storage format: kiln_format_arrays.
std::array<kiln_format_array_t, KILN_FORMAT_ARRAYS> getFormatArrays(TiledAttr layout);
/// Returns the numbers along K of an output that cannot be separated.
int64_t getWhole(StorageAttr storage);
/// Returns the `group` of kiln_placement_t: the size of the groups, or how many i8 are interleaved; else 0.
uint32_t getPlacementGroup(TiledAttr layout);

/// Whether an interleaved i8 layout has offsets after its scales.
bool hasOffsets(TiledAttr layout);

/// Returns the parts of a tensor whose layout code generation supports: its elements, then the scales, then the zero
/// points, outer scales or offsets.
SmallVector<StoredPart, 3> getStoredParts(RankedTensorType type);

/// Replaces each tensor type by the types of its parts; other types are unchanged.
SmallVector<Type> expandParts(TypeRange types);

/// Returns the storage format of a weight; null: unquantised.
StorageAttr getStorage(RankedTensorType type);

/// Returns the type of the elements in memory.
Type getStoredElement(RankedTensorType type);

/// Returns the bytes of all parts of a tensor with a static shape.
int64_t getStoredBytes(RankedTensorType type);

} // namespace mlir::kiln
