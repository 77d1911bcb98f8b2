// SPDX-License-Identifier: Apache-2.0
//
// What the tuner foretells of a schedule before it is measured: how full the registers are, how much of the tiles is
// ragged, what the caches hold. It orders the first candidates and nothing else.
#pragma once

#include "compiler/schedule/Workload.h"
#include "compiler/tuner/Search.h"

namespace kiln {

/// The sizes of a product of matrices, 0: the kernel has none; and the bits of an element of the sums and of the two
/// operands.
struct ProductShape {
  int64_t rows = 0, columns = 0, depth = 0;
  int sumBits = 32, leftBits = 32, rightBits = 32;
};

/// That of the kernel's largest reduction over two operands.
ProductShape productShape(mlir::func::FuncOp kernel, llvm::ArrayRef<int64_t> extents);

/// The model of a strategy's space. Parameters that it does not know cost a little with each step away from their
/// presets.
CostModel makeCostModel(llvm::StringRef strategy, const SearchSpace &space, const ProductShape &shape,
                        const MachineModel &machine);

} // namespace kiln
