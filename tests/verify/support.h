// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of compiler/verify: a context with all dialects, a target that only has layouts, passes made of a
// function.
#pragma once

#include "compiler/pipeline/Pipeline.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"
#include "targets/passes/Passes.h"
#include "targets/target.h"
#include <functional>

namespace kiln::testing {

/// A target with layouts and polynomials that compiles nothing.
struct LayoutTarget : Target {
  explicit LayoutTarget(std::int64_t tile = 16, TargetHooks hooks = {}) : Target({}, withLayouts(hooks, tile), {}) {}

private:
  static TargetHooks withLayouts(TargetHooks hooks, std::int64_t tile) {
    hooks.weightTile = [tile](std::int64_t, std::int64_t) { return tile; };
    hooks.addKernelPasses = mlir::kiln::addExpandMath;
    return hooks;
  }
};

inline mlir::DialectRegistry allDialects() {
  mlir::DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  return registry;
}

struct Context : mlir::MLIRContext {
  Context() : MLIRContext(allDialects(), Threading::DISABLED) { loadAllAvailableDialects(); }
};

/// A pass that runs a function.
template <class Op> class TestPass : public mlir::PassWrapper<TestPass<Op>, mlir::OperationPass<Op>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPass)
  explicit TestPass(std::function<void(Op)> change) : change(std::move(change)) {}
  llvm::StringRef getArgument() const override { return "test-change"; }
  void runOnOperation() override { change(this->getOperation()); }

private:
  std::function<void(Op)> change;
};

} // namespace kiln::testing
