// SPDX-License-Identifier: Apache-2.0
//
// A tensor in memory: one array, or several where a weight's storage has scales. Kernels take a pointer for each, host
// code and the packed weights lay them out one behind the other.
#pragma once

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// One of the arrays: dense, in row major order.
struct StoredPart {
  RankedTensorType type;
  int64_t offset = 0; // bytes from the first part
};

/// Elements of i4 in one of the i32 in which they lie.
constexpr int64_t elementsOfWord = 8;
/// The lowest bit of an element of i4 in its word: of k and k + 4 in the halves of byte k % 4.
constexpr int64_t bitInWord(int64_t k) { return k % 4 * 8 + k / 4 % 2 * 4; }

/// Whether words of i8 have offsets behind their scales.
bool hasOffsets(TiledAttr layout);

/// The parts of a tensor, of a layout that is generated: its elements, then the scales, then what stands for 0, or
/// offsets.
SmallVector<StoredPart, 3> getStoredParts(RankedTensorType type);

/// The types of the parts of all tensors among the types; others as they are.
SmallVector<Type> expandParts(TypeRange types);

/// How a weight is stored; null: as it is.
StorageAttr getStorage(RankedTensorType type);

/// The type of the elements in memory.
Type getStoredElement(RankedTensorType type);

/// Bytes of all parts of a tensor of fixed extents.
int64_t getStoredBytes(RankedTensorType type);

} // namespace mlir::kiln
