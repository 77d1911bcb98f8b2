// SPDX-License-Identifier: Apache-2.0
//
// Halide's schedules for GPUs: which threads and blocks compute which elements of a kernel's results. A thread
// computes all intermediate values of its elements; no shared memory is used.
#pragma once

#include "targets/halide/translate/Translator.h"
#include "targets/target.h"

namespace kiln::cuda {

/// Appends "columns" and "elements". A block has "threads" threads (Loops.cpp), of which "columns" are contiguous
/// along the innermost dimension of a result, the others along all outer dimensions; with one column, threads are
/// along all dimensions flattened to one. A thread computes "elements" elements, with a stride of the number of
/// columns.
void addGpuParameters(mlir::func::FuncOp kernel, SearchSpace &space);

/// Schedules the translated results of a kernel without reductions.
void scheduleForGpu(halide::Translator &translator, const ScheduleConfig &config);

} // namespace kiln::cuda
