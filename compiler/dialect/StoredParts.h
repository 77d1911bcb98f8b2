// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a tensor in memory: one, or several where a weight's storage format has scales. Kernels take a pointer
// for each; in entry-point code and packed weights they are stored consecutively.
#pragma once

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// One of the arrays: dense, in row-major order.
struct StoredPart {
  RankedTensorType type;
  int64_t offset = 0; // bytes from the first part
};

/// The number of i4 elements that are packed in one i32.
constexpr int64_t elementsOfWord = 8;
/// Returns the lowest bit of i4 element k in its i32: elements k and k + 4 share byte k % 4.
constexpr int64_t bitInWord(int64_t k) { return k % 4 * 8 + k / 4 % 2 * 4; }

/// Whether an interleaved i8 layout has offsets after its scales.
bool hasOffsets(TiledAttr layout);

/// Returns the parts of a tensor whose layout code generation supports: its elements, then the scales, then the zero
/// points, or offsets.
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
