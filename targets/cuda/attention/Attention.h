// SPDX-License-Identifier: Apache-2.0
//
// The attention strategy: all kernel stages from QK^T to the outputs become one launch, or two with split KV, and no
// score is stored.
#pragma once

#include "targets/cuda/plan/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StageStrategy> matchAttention(const StageContext &context);

/// Returns the kernel's shape-specialised variants: for one query and for few queries, or, if the queries are also the
/// keys, for short sequences. Bounds that the kernel's own bounds exclude are omitted; there are none if the kernel
/// has no attention.
std::vector<ShapeVariant> attentionVariants(mlir::func::FuncOp kernel, const Placement &placement);

} // namespace kiln::cuda
