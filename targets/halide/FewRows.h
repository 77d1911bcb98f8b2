// SPDX-License-Identifier: Apache-2.0
//
// Contractions of few rows with a weight: a strategy of their own (FewRows.cpp), its search space (FewRowsSpace.cpp).
#pragma once

#include "targets/halide/Strategy.h"
#include "targets/halide/Structure.h"

namespace kiln::halide {

/// The most rows that it serves.
inline constexpr int64_t mostFewRows = 32;

/// The forms of a kernel with more rows at run time that it would serve; none if it is not such a contraction.
std::vector<RowVariant> fewRowsVariants(mlir::func::FuncOp kernel, const MachineModel &machine);

struct RowRange {
  int64_t least, most;
};
/// The rows of a contraction; one without rows has one.
RowRange rowsOf(const Contraction &contraction);

/// The search space; hasPanels: panels of columns are reduced as they are stored.
SearchSpace fewRowsSpace(const Contraction &shape, bool hasPanels, const MachineModel &machine);

} // namespace kiln::halide
