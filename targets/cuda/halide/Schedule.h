// SPDX-License-Identifier: Apache-2.0
//
// Halide's schedules for GPUs: which threads and blocks compute which elements of a kernel's results. All that an
// element needs is computed in its thread; no memory is shared.
#pragma once

#include "targets/halide/Translate.h"
#include "targets/target.h"

namespace kiln::cuda {

/// Appends "columns" and "elements". A block has "threads" threads (Loops.cpp), of which "columns" lie side by side
/// along the innermost dimension of a result, the others along all the others; with one column they go along all of
/// them as one. A thread computes "elements" elements, as far apart as there are columns.
void addGpuParameters(mlir::func::FuncOp kernel, SearchSpace &space);

/// Schedules the translated results of a kernel without reductions.
void scheduleForGpu(halide::Translator &translator, const SchedulePoint &point);

} // namespace kiln::cuda
