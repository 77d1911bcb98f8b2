// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/Training.h"

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

Value getInput(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : llvm::reverse(function.getArguments()))
    if (auto own = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), nameAttrName); own && own == name)
      return argument;
  return {};
}

} // namespace mlir::kiln
