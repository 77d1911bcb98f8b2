// SPDX-License-Identifier: Apache-2.0
//
// The strategy for GEMV and skinny GEMMs with at most eight rows, as in decoding: all rows are computed at once, so
// that each weight is read once, in its memory order. Also, the shape-specialised variants of a kernel for few rows.
#pragma once

#include "targets/cuda/plan/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StageStrategy> matchSkinnyGemm(const StageContext &context);

/// Returns the kernel's shape-specialised variants by maximum number of rows: 1, 8, and for large weights 4 and the
/// bounds of tileBounds() or wgmmaBounds(). Bounds that the kernel's own bounds exclude are omitted.
std::vector<ShapeVariant> skinnyGemmVariants(mlir::func::FuncOp kernel, const Placement &placement);

} // namespace kiln::cuda
