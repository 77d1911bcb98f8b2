// SPDX-License-Identifier: Apache-2.0
//
// A model on its way to one target: imported, which also says what the run time checks of inputs, optimised, formed
// into kernels. Each target has a module of its own, since layouts differ.
#pragma once

#include "compiler/emit/Compile.h"
#include "compiler/emit/RowVariants.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// A model for one instruction set, on its way.
struct TargetModule {
  const Target *target = nullptr;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  RowVariants forms;
  llvm::StringMap<KernelObject> kernels; // by the name of the function
};

/// Fills in the module and its forms, and of the report what the import tells: checks, ranks, remarks. With
/// EmitForm::Ir and EmitForm::Linalg it ends with the text of that form in the report.
mlir::LogicalResult lowerForTarget(const Graph &graph, const CompileOptions &options, const Target &target,
                                   CompileReport &report, TargetModule &lowered, llvm::raw_ostream &errors);

} // namespace kiln
