// SPDX-License-Identifier: Apache-2.0
//
// Evaluation of affine expressions of modules that may be wrong.
#pragma once

#include <cstdint>

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"

namespace kiln::verify {

/// Returns the value of the expression. Throws std::runtime_error for a dimension or symbol that has no value, for a
/// divisor that is not positive, and for a negative dividend.
std::int64_t valueOf(mlir::AffineExpr expr, llvm::ArrayRef<std::int64_t> dims, llvm::ArrayRef<std::int64_t> symbols);

} // namespace kiln::verify
