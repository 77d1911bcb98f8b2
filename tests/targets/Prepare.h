// SPDX-License-Identifier: Apache-2.0
//
// The text of a kernel function as a target's compilers get it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace kiln::testing {

/// Parses the kernel, of linalg ops or of kiln ops; null if it does not parse.
mlir::OwningOpRef<mlir::ModuleOp> parseKernel(mlir::MLIRContext &context, const std::string &text);

/// The same with kiln ops lowered and math expanded.
mlir::OwningOpRef<mlir::ModuleOp> prepare(mlir::MLIRContext &context, const std::string &text);

} // namespace kiln::testing
