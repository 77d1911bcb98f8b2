// SPDX-License-Identifier: Apache-2.0
//
// Moves a group of ops into a separate kernel function, still as kiln ops.
#pragma once

#include "compiler/transforms/KernelGroups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace mlir::kiln {

/// Maps the results of calls to the values that they replace.
using CalledValues = DenseMap<Value, Value>;

/// Creates the function `name` before `entry` and calls it in place of the group, whose ops the caller erases. The
/// call's results replace all uses except those in groups that compute the value again (`isInternalUse`). An op in
/// several groups may use such a value in one and get it from its call in another, so `called` holds the values of the
/// block's earlier groups. It is invalid once their ops are erased.
func::FuncOp outlineKernel(const KernelGroup &group, func::FuncOp entry, StringRef name,
                           function_ref<bool(Operation *user, Operation *producer)> isInternalUse,
                           CalledValues &called);

/// Creates the function of a linear for a group of a grouped_linear, and calls it for each group of rows
/// (GroupingRules::callsGroups). Otherwise like outlineKernel.
func::FuncOp outlineGroups(const KernelGroup &group, func::FuncOp entry, StringRef name,
                           function_ref<bool(Operation *user, Operation *producer)> isInternalUse,
                           CalledValues &called);

} // namespace mlir::kiln
