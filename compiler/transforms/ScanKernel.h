// SPDX-License-Identifier: Apache-2.0
//
// Loops over time that are one kernel: the kernel function has the kiln.scan, with ops of the dialect in its body until
// it is lowered, and with linalg ops after that.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// Replaces the scan by the call of a kernel that consists of it, and returns the kernel; null if the scan stays a loop
/// of the host (compiler/kernel/ScanBlocks.h says which do).
func::FuncOp outlineScan(ScanOp scan, func::FuncOp entry, StringRef name);

/// Lowers the body of a kernel's scan to linalg ops.
LogicalResult lowerScan(func::FuncOp kernel, bool isBatchInvariant);

} // namespace mlir::kiln
