// SPDX-License-Identifier: Apache-2.0
//
// The strategy for skinny GEMM and GEMV with a weight (SkinnyGemm.cpp), and its search space (SkinnyGemmSpace.cpp).
#pragma once

#include "targets/halide/Structure.h"
#include "targets/halide/strategies/Strategy.h"

namespace kiln::halide {

/// The most rows that the strategy serves.
inline constexpr int64_t mostSkinnyRows = 32;

/// Returns the shape-specialised variants, of a kernel with a dynamic number of rows, that this strategy would compile;
/// none if the kernel is not such a contraction.
std::vector<ShapeVariant> skinnyGemmVariants(mlir::func::FuncOp kernel, const MachineModel &machine);

struct RowRange {
  int64_t least, most;
};
/// Returns the range of a contraction's rows; a contraction without a row loop has one row.
RowRange rowsOf(const Contraction &contraction);

/// Returns the search space.
SearchSpace skinnyGemmSpace(const Contraction &shape, const MachineModel &machine);

} // namespace kiln::halide
