// SPDX-License-Identifier: Apache-2.0
//
// The text of a kernel function as a target's compilers get it.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace kiln::testing {

/// Parses the kernel, of linalg ops or of kiln ops; null if it does not parse.
mlir::OwningOpRef<mlir::ModuleOp> parseKernel(mlir::MLIRContext &context, const std::string &text);

/// The same with kiln ops lowered and math expanded.
mlir::OwningOpRef<mlir::ModuleOp> prepare(mlir::MLIRContext &context, const std::string &text);

/// The first words of whoever refuses the kernel, on the way there or in `compile`; empty: nobody does.
std::string refusalOf(const std::string &text,
                      llvm::function_ref<llvm::LogicalResult(mlir::func::FuncOp kernel)> compile);

} // namespace kiln::testing
