// SPDX-License-Identifier: Apache-2.0
//
// The constants of a variant whose kernels read a device's memory: the runtime copies these bytes there when a model is
// created. The constants of a CPU variant are globals of the entry-point glue.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include <cstdint>
#include <string>

namespace kiln {

class ConstantPool {
public:
  /// Adds the values, stored dense and aligned to 64 bytes, and returns their offset. Equal values are stored once.
  uint64_t add(mlir::DenseElementsAttr values);

  const std::string &bytes() const { return stored; }

private:
  llvm::DenseMap<mlir::Attribute, uint64_t> offsets;
  std::string stored;
};

} // namespace kiln
