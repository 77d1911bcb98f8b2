// SPDX-License-Identifier: Apache-2.0
//
// The strategy for rows: softmax, norms, sums and maxima along elements that are contiguous in memory. A warp or a
// block owns a row, and executes all consecutive stages that work along it.
#pragma once

#include "targets/cuda/ptx/ElementEmitter.h"
#include "targets/cuda/rows/FusedStages.h"
#include "targets/cuda/rows/ThreadGroup.h"

namespace kiln::cuda {

std::unique_ptr<StageStrategy> matchRows(const StageContext &context);

/// Executes the stages of a run along the row of the thread group.
mlir::LogicalResult buildRow(tile::Builder &b, const RowRun &run, const StageContext &context, ElementEmitter &emitter,
                             ThreadGroup &threadGroup);

/// Computes the only row of a run with all `threads` threads of the block: calls give(number, element) for each of the
/// thread's elements of `row`, which a stage of the run stores.
mlir::LogicalResult computeOnlyRow(tile::Builder &b, const RowRun &run, const StageContext &context,
                                   ElementEmitter &emitter, int64_t threads, mlir::Value row,
                                   llvm::function_ref<void(tile::Value number, tile::Value element)> give);

} // namespace kiln::cuda
