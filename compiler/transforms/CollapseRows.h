// SPDX-License-Identifier: Apache-2.0
//
// Finds how many leading axes a kernel may collapse into one: to ops that work on rows, [batch, tokens, 768] is
// equivalent to [batch * tokens, 768].
#pragma once

#include "compiler/transforms/KernelGroups.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::kiln {

struct RowCollapse {
  /// The number of leading axes that are collapsed into one; 1 if none are.
  int64_t axes = 1;
  /// The operands and results of the group's ops that have these axes.
  llvm::SmallDenseSet<Value> values;

  /// The type in the kernel; its dimensions are still expressions over the symbols of the module.
  RankedTensorType getType(Value value) const;
};

RowCollapse findRowCollapse(const KernelGroup &group);

} // namespace mlir::kiln
