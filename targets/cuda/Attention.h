// SPDX-License-Identifier: Apache-2.0
//
// The strategy of attention: all steps from the products of queries and keys to the outputs are one launch, or two, and
// no score is stored.
#pragma once

#include "targets/cuda/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StepStrategy> matchAttention(const StepContext &context);

/// The kernel's forms for one query and for few, of those its bounds leave something to; none if it has no attention.
std::vector<RowVariant> attentionVariants(mlir::func::FuncOp kernel, const Placement &placement);

} // namespace kiln::cuda
