// SPDX-License-Identifier: Apache-2.0
//
// The constants of a variant whose kernels read a device's memory: bytes that the run time copies there when a model is
// created. Those of a CPU are globals of the host code.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include <cstdint>
#include <string>

namespace kiln {

class ConstantPool {
public:
  /// The offset of the values, stored dense, 64-aligned; equal ones are stored once.
  uint64_t add(mlir::DenseElementsAttr values);

  const std::string &bytes() const { return stored; }

private:
  llvm::DenseMap<mlir::Attribute, uint64_t> offsets;
  std::string stored;
};

} // namespace kiln
