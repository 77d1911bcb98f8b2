// SPDX-License-Identifier: Apache-2.0
//
// Moves a group of ops into a kernel function of its own, still as kiln ops.
#pragma once

#include "compiler/transforms/KernelGroups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace mlir::kiln {

/// Values that calls give, by the values that they stand for.
using CalledValues = DenseMap<Value, Value>;

/// Creates the function `name` before `entry` and calls it in place of the group, whose ops stay for the caller to
/// erase; the call's results replace all uses but those in groups that compute the value again (`isInternalUse`). An op
/// of several groups may use such a value and, in another of them, get it from its call: so `called` has those of the
/// block's groups before, and is of no use once their ops are erased.
func::FuncOp outlineKernel(const KernelGroup &group, func::FuncOp entry, StringRef name,
                           function_ref<bool(Operation *user, Operation *producer)> isInternalUse,
                           CalledValues &called);

} // namespace mlir::kiln
