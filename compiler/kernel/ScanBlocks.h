// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are a whole loop over time: a kiln.scan whose body is linalg on tensors. A task computes a block of one
// axis in all iterations, such as some channels or heads, if no iteration reads elements of other blocks.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

/// Returns the scan of a kernel that is one; null for other kernels.
mlir::kiln::ScanOp scanOf(mlir::func::FuncOp kernel);

/// How a scan is divided into blocks.
struct ScanBlocks {
  /// The axis that is divided, by the value: carried values and results of ops in the body. The others are whole in
  /// each task.
  llvm::DenseMap<mlir::Value, unsigned> axes;
  /// The loop that is divided, by the op. The others are executed by each task.
  llvm::DenseMap<mlir::Operation *, unsigned> loops;
  /// The axis that is divided, by the number of the yielded value.
  llvm::SmallVector<unsigned> yielded;
  /// The extent that is divided; null if there is a single task.
  mlir::AffineExpr extent;
  /// The most bytes of states and values of an iteration for an extent of 1, or of all of them without blocks.
  int64_t bytes = 0;
};

/// Returns how a lowered scan is divided; nullopt if it is better not a kernel: ops without code, or too much work or
/// memory for one task. After a target's own passes the ops of regions are no longer checked (`isExpanded`).
std::optional<ScanBlocks> findScanBlocks(mlir::kiln::ScanOp scan, bool isExpanded = false);

} // namespace kiln
