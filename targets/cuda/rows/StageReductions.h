// SPDX-License-Identifier: Apache-2.0
//
// The reductions of a kernel stage: the stage's op, or ops that it reads element by element and computes in place.
#pragma once

#include "targets/cuda/plan/Strategy.h"
#include <optional>

namespace kiln::cuda {

struct StageReduction {
  mlir::linalg::GenericOp op;
  llvm::SmallVector<unsigned> loops; // for each parallel loop of `op`, the loop of the stage's op; 0 for other loops
};

/// Returns nullopt if the stage's op does not read each of them element by element.
std::optional<llvm::SmallVector<StageReduction>> findReductions(const StageContext &context);

} // namespace kiln::cuda
