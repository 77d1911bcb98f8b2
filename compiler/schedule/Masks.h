// SPDX-License-Identifier: Apache-2.0
//
// What masks leave of a kernel's work: a score that is replaced by a number so low that its weight is 0 need not be
// computed, nor what it would have added.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace kiln {

/// The share of its iterations that masks leave, between 0 and 1, of each op that they leave a part of. Where a mask
/// depends on integers in memory, such as the lengths of sequences, these have the middle of the values that the kernel
/// is measured with.
llvm::DenseMap<mlir::Operation *, double> findMaskedShares(mlir::func::FuncOp kernel, llvm::ArrayRef<int64_t> extents);

} // namespace kiln
