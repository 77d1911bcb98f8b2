// SPDX-License-Identifier: Apache-2.0
//
// How many leading axes a kernel may treat as one: [batch, tokens, 768] is as good as [batch * tokens, 768] to ops that
// work on rows.
#pragma once

#include "compiler/transforms/KernelGroups.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::kiln {

struct RowCollapse {
  /// The leading axes that become one; 1 if none do.
  int64_t axes = 1;
  /// The values that have them: operands and results of the group's ops.
  llvm::SmallDenseSet<Value> values;

  /// The type in the kernel; the extents are still over the symbols of the module.
  RankedTensorType getType(Value value) const;
};

RowCollapse findRowCollapse(const KernelGroup &group);

} // namespace mlir::kiln
