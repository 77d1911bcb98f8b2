// SPDX-License-Identifier: Apache-2.0
//
// Parses the text of a kernel function into the form that a target's compiler receives.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace kiln::testing {

/// Parses the kernel, of linalg ops or of kiln ops. Returns null if it does not parse.
mlir::OwningOpRef<mlir::ModuleOp> parseKernel(mlir::MLIRContext &context, const std::string &text);

/// Parses the kernel, lowers its kiln ops and expands its math ops.
mlir::OwningOpRef<mlir::ModuleOp> prepare(mlir::MLIRContext &context, const std::string &text);

/// Returns the first diagnostic of `prepare` or of `compile`, or an empty string if both succeed.
std::string refusalOf(const std::string &text,
                      llvm::function_ref<llvm::LogicalResult(mlir::func::FuncOp kernel)> compile);

} // namespace kiln::testing
