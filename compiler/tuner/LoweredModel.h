// SPDX-License-Identifier: Apache-2.0
//
// A model lowered to kernels for one target, with their shape-specialised variants, as in compilation.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/driver/Lower.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/library/ShapeVariants.h"
#include "compiler/schedule/TuningFile.h"
#include "kiln/graph.h"
#include "targets/registry.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"

namespace kiln {

struct LoweredModel {
  const Target *target = nullptr;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ShapeVariants forms;

  auto kernels() { return llvm::make_filter_range(module->getOps<mlir::func::FuncOp>(), isKernel); }
};

/// Fails if the model does not compile; the reason has been reported.
llvm::Expected<std::unique_ptr<LoweredModel>> lowerModel(const Graph &graph, const std::string &name,
                                                         llvm::StringRef target, const LoweringOptions &options);

/// Returns the model for each target that has measurements in the database and that this compiler supports.
llvm::Expected<std::vector<std::unique_ptr<LoweredModel>>> lowerMeasured(const Graph &graph, const std::string &name,
                                                                         const TuningDatabase &database,
                                                                         const LoweringOptions &options);

} // namespace kiln
