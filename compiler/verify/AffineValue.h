// SPDX-License-Identifier: Apache-2.0
//
// Affine expressions, as numbers.
#pragma once

#include <cstdint>

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"

namespace kiln::verify {

/// Throws std::runtime_error for a dimension or symbol that has no value, and for a division by what is not positive or
/// of what is negative.
std::int64_t valueOf(mlir::AffineExpr expr, llvm::ArrayRef<std::int64_t> dims, llvm::ArrayRef<std::int64_t> symbols);

} // namespace kiln::verify
