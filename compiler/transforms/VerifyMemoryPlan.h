// SPDX-License-Identifier: Apache-2.0
//
// Whether a memory plan keeps what is still to be read. It walks through the entry as the host function will, and knows
// nothing of how the plan was made.
#pragma once

#include "compiler/transforms/PlanMemory.h"

namespace mlir::kiln {

/// Fails with a diagnostic at the op that would read memory which another value has overwritten, or whose result lies
/// where its kernel still reads.
LogicalResult verifyMemoryPlan(func::FuncOp entry, const MemoryPlan &plan);

} // namespace mlir::kiln
