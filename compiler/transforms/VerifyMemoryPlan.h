// SPDX-License-Identifier: Apache-2.0
//
// Checks that a memory plan overwrites no value that is still to be read. The check executes the entry as the generated
// code will, and is independent of how the plan was made.
#pragma once

#include "compiler/transforms/PlanMemory.h"

namespace mlir::kiln {

/// Fails with a diagnostic at the op that would read memory which another value has overwritten, or whose result
/// overlaps memory that its kernel still reads.
LogicalResult verifyMemoryPlan(func::FuncOp entry, const MemoryPlan &plan);

} // namespace mlir::kiln
