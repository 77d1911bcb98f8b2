// SPDX-License-Identifier: Apache-2.0
//
// What a kernel of few rows does while kernels before it still run: it brings weights to the second cache, so that
// memory is busy from one kernel to the next.
#pragma once

#include "targets/cuda/ContractionMatch.h"

namespace kiln::cuda {

/// Whether the tensor is a weight, which may be read before a kernel has waited for others.
bool isWeight(mlir::Value tensor);

/// Whether the input is a weight in memory as it is, of which there is something to read at any depth.
bool isEarly(const StepContext &context, const Contraction &contraction, const ContractionInput &input);

/// How many steps of `ofStep` of the depth there are behind the first `done`, the last of which may be a part.
tile::Value stepsBehind(tile::Builder &b, tile::Value depth, int64_t ofStep, int64_t done);

/// Brings the block's columns of the weight at the depth from `first` on to the second cache, where depth or columns
/// lie side by side. A block has `columns` of them of a batch. Not of weights that have more than half of that cache.
void prefetchWeight(tile::Builder &b, Reader &reader, const Contraction &contraction, const ContractionInput &weight,
                    int64_t columns, int64_t threads, int64_t first);

/// Brings what the epilogue reads of weights at the block's columns.
void prefetchEpilogue(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
                      int64_t columns);

/// Brings all weights of the kernel that are small: each block does.
void prefetchSmallWeights(tile::Builder &b, Reader &reader, mlir::func::FuncOp kernel, int64_t threads);

} // namespace kiln::cuda
