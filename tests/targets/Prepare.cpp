// SPDX-License-Identifier: Apache-2.0
#include "Prepare.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "targets/passes/Passes.h"

namespace kiln::testing {

using namespace mlir;

OwningOpRef<ModuleOp> parseKernel(MLIRContext &context, const std::string &text) {
  context.loadDialect<affine::AffineDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                      math::MathDialect, tensor::TensorDialect, mlir::kiln::KilnDialect>();
  return parseSourceString<ModuleOp>(text, &context);
}

OwningOpRef<ModuleOp> prepare(MLIRContext &context, const std::string &text) {
  OwningOpRef<ModuleOp> module = parseKernel(context, text);
  if (!module)
    return {};
  bool hasKilnOps =
      module
          ->walk([](Operation *op) {
            return isa<mlir::kiln::KernelOpInterface>(op) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  PassManager passes(&context);
  if (hasKilnOps)
    passes.addNestedPass<func::FuncOp>(mlir::kiln::createLowerKernels());
  passes.addNestedPass<func::FuncOp>(mlir::kiln::createExpandMath());
  if (failed(passes.run(*module)))
    return {};
  return module;
}

std::string refusalOf(const std::string &text, function_ref<LogicalResult(func::FuncOp kernel)> compile) {
  MLIRContext context;
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = prepare(context, text);
  if (module && succeeded(compile(*module->getOps<func::FuncOp>().begin())))
    return {};
  return message;
}

} // namespace kiln::testing
