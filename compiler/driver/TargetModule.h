// SPDX-License-Identifier: Apache-2.0
//
// The first stages of a compilation: import, which also determines the runtime's checks of inputs, optimisation, and
// kernel formation. Each target has a separate module, since layouts differ.
#pragma once

#include "compiler/driver/CompileContext.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/library/ShapeVariants.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kiln {

/// A model in the course of compilation for one instruction set.
struct TargetModule {
  const Target *target = nullptr;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ShapeVariants forms;

  auto kernels() { return llvm::make_filter_range(module->getOps<mlir::func::FuncOp>(), isKernel); }
};

struct LoweredTargets {
  ModelInterface model; // with the facts that only the modules show: checks, ranks, stages, room of sliding states
  std::vector<std::string> remarks;  // of the import
  std::vector<TargetModule> modules; // in the order of the targets
};

/// Imports the model for the first target only, as the result is the same for all targets, and runs no other pass.
mlir::FailureOr<LoweredTargets> importModule(CompileContext &context);

/// Lowers the model to kernels and their callers for each target. With a folder for dumps, each stage of the IR is
/// written there.
mlir::FailureOr<LoweredTargets> lowerAll(CompileContext &context);

/// Does the same, and adds the shape-specialised variants of kernels.
mlir::FailureOr<LoweredTargets> formKernels(CompileContext &context);

/// Returns the text of all modules.
std::string printModules(LoweredTargets &lowered);

/// Returns the symbol of a kernel, or of the glue of an entry, in a library: "gpt_x86_64_v4_linear_3".
std::string librarySymbol(llvm::StringRef model, const Target &target, llvm::StringRef function);

} // namespace kiln
