// SPDX-License-Identifier: Apache-2.0
//
// Lowers a model for one target: import, which also determines the runtime's checks of inputs, optimisation, and kernel
// formation. Each target has a separate module, since layouts differ.
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/library/ShapeVariants.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// A model in the course of compilation for one instruction set.
struct TargetModule {
  const Target *target = nullptr;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ShapeVariants forms;
  llvm::StringMap<KernelObject> kernels; // keyed by the name of the function
};

/// Fills in the module and its shape-specialised variants, and the facts of the import in the report: checks, ranks and
/// remarks. With EmitForm::Ir and EmitForm::Linalg it stops at that form and puts its text in the report.
mlir::LogicalResult lowerForTarget(const Graph &graph, const CompileOptions &options, const Target &target,
                                   CompileReport &report, TargetModule &lowered, llvm::raw_ostream &errors);

} // namespace kiln
