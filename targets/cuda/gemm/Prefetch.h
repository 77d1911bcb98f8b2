// SPDX-License-Identifier: Apache-2.0
//
// Prefetches of weights to the L2 cache by skinny-GEMM kernels while earlier kernels still run (programmatic dependent
// launch), so that memory stays busy from one kernel to the next.
#pragma once

#include "targets/cuda/gemm/Match.h"

namespace kiln::cuda {

/// Whether the tensor is a weight, which may be read before a kernel has waited for earlier ones.
bool isWeight(mlir::Value tensor);

/// Whether the input is a weight that is read from memory without conversion, and K is never 0, so that its first part
/// can be read early.
bool isPrefetchable(const StageContext &context, const Contraction &contraction, const ContractionInput &input);

/// Returns the number of iterations over `ofStep` of K after the first `done`; the last one may be partial.
tile::Value iterationsAfter(tile::Builder &b, tile::Value k, int64_t ofStep, int64_t done);

/// Prefetches the block's columns of the weight to the L2 cache, from K index `first` on; K or the columns are
/// contiguous in memory. A block has `columns` columns of a batch. Weights larger than half of the L2 cache are not
/// prefetched.
void prefetchWeight(tile::Builder &b, ElementEmitter &emitter, const Contraction &contraction,
                    const ContractionInput &weight, int64_t columns, int64_t threads, int64_t first);

/// Prefetches the weights that the epilogue reads at the block's columns.
void prefetchEpilogue(tile::Builder &b, ElementEmitter &emitter, const StageContext &context,
                      const Contraction &contraction, int64_t columns);

/// Prefetches all small weights of the kernel, in each block.
void prefetchSmallWeights(tile::Builder &b, ElementEmitter &emitter, mlir::func::FuncOp kernel, int64_t threads);

} // namespace kiln::cuda
