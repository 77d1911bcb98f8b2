// SPDX-License-Identifier: Apache-2.0
//
// The analytic cost model of schedules before measurement: register use, partial tiles, and cache footprints. It only
// orders the first candidates.
#pragma once

#include "compiler/kernel/Workload.h"
#include "compiler/tuner/Search.h"
#include "targets/target.h"

namespace kiln {

/// The sizes of a GEMM, 0: the kernel has none; and the element widths of the accumulators and of the two operands.
struct ProductShape {
  int64_t rows = 0, columns = 0, kExtent = 0;
  int sumBits = 32, leftBits = 32, rightBits = 32;
};

/// Returns the sizes of the kernel's largest reduction over two operands.
ProductShape productShape(mlir::func::FuncOp kernel, llvm::ArrayRef<int64_t> extents);

/// Returns the cost model of a strategy's search space. Parameters that the model does not know cost a little for each
/// step from their default.
CostModel makeCostModel(llvm::StringRef strategy, const SearchSpace &space, const ProductShape &shape,
                        const MachineModel &machine);

} // namespace kiln
