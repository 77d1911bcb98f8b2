// SPDX-License-Identifier: Apache-2.0
//
// The strategy for rows: softmax, norms, sums and maxima along what lies side by side in memory. A warp or a block has
// a row, and does all consecutive steps that work along it.
#pragma once

#include "targets/cuda/Reader.h"
#include "targets/cuda/RowRun.h"

namespace kiln::cuda {

std::unique_ptr<StepStrategy> matchRows(const StepContext &context);

/// Computes the only row of a run by all threads of the block, of which there are so many: give(number, element) for
/// each element that the thread has of `row`, which a step of the run stores.
mlir::LogicalResult computeOnlyRow(tile::Builder &b, const RowRun &run, const StepContext &context, Reader &reader,
                                   int64_t threads, mlir::Value row,
                                   llvm::function_ref<void(tile::Value number, tile::Value element)> give);

} // namespace kiln::cuda
