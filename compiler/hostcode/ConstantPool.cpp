// SPDX-License-Identifier: Apache-2.0
#include "compiler/hostcode/ConstantPool.h"

#include "compiler/dialect/ElementTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln {

/// Appends an element in little-endian order. A boolean takes one byte.
static void append(std::string &bytes, const APInt &element, uint64_t size) {
  const uint64_t word = element.getZExtValue();
  for (uint64_t at = 0; at < size; ++at)
    bytes.push_back(char(word >> (8 * at)));
}

uint64_t ConstantPool::add(DenseElementsAttr values) {
  auto [found, isNew] = offsets.try_emplace(values, llvm::alignTo(stored.size(), 64));
  if (!isNew)
    return found->second;
  stored.resize(found->second);
  const uint64_t size = mlir::kiln::storedBytes(values.getElementType(), 1);
  if (isa<FloatType>(values.getElementType()))
    for (const APFloat &element : values.getValues<APFloat>())
      append(stored, element.bitcastToAPInt(), size);
  else
    for (const APInt &element : values.getValues<APInt>())
      append(stored, element, size);
  return found->second;
}

} // namespace kiln
