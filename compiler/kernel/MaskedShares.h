// SPDX-License-Identifier: Apache-2.0
//
// Computes how much of a kernel's work masks exclude: a score that is replaced by a number so low that its weight is 0
// need not be computed, nor its contribution to sums.
#pragma once

#include "compiler/kernel/Attention.h"
#include "llvm/ADT/DenseMap.h"

namespace kiln {

/// Returns, for each op with masked iterations, the share of its iterations that masks do not exclude, between 0 and 1.
/// Where a mask depends on integers in memory, such as sequence lengths, it assumes the middle of the values with which
/// the kernel is measured.
llvm::DenseMap<mlir::Operation *, double> findMaskedShares(const DecomposedKernel &kernel,
                                                           llvm::ArrayRef<int64_t> extents);

} // namespace kiln
