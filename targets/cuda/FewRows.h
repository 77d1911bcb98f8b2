// SPDX-License-Identifier: Apache-2.0
//
// The strategy of products with at most eight rows, as decoding has: all rows at once, so that a weight is read once,
// as it lies. And the forms of a kernel for that.
#pragma once

#include "targets/cuda/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StepStrategy> matchFewRows(const StepContext &context);

/// The kernel's forms for one row and for eight, of those its bounds leave something to.
std::vector<RowVariant> fewRowsVariants(mlir::func::FuncOp kernel, const Placement &placement);

} // namespace kiln::cuda
