// SPDX-License-Identifier: Apache-2.0
//
// What the tests of compiler/verify share: a context with all dialects, a target that only has layouts,
// passes made of a function.
#pragma once

#include "compiler/transforms/Pipeline.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"
#include "targets/target.h"
#include <functional>

namespace kiln::testing {

/// Compiles nothing.
class LayoutTarget : public Target {
public:
  explicit LayoutTarget(std::int64_t tile = 16) : tile(tile) {}
  llvm::StringRef name() const override { return "layouts"; }
  uint32_t isa() const override { return 0; }
  const MachineModel &machine() const override { return model; }
  int64_t weightTile(int64_t, int64_t) const override { return tile; }
  Schedulable describe(mlir::func::FuncOp) const override { return {}; }
  mlir::FailureOr<KernelObject> compile(mlir::func::FuncOp, llvm::StringRef, const SchedulePoint *) const override {
    return mlir::failure();
  }
  mlir::FailureOr<std::string> print(mlir::func::FuncOp, llvm::StringRef, KernelText,
                                     const SchedulePoint *) const override {
    return mlir::failure();
  }

private:
  std::int64_t tile;
  MachineModel model;
};

inline mlir::DialectRegistry allDialects() {
  mlir::DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  return registry;
}

struct Context : mlir::MLIRContext {
  Context() : MLIRContext(allDialects(), Threading::DISABLED) { loadAllAvailableDialects(); }
};

/// A pass made of a function.
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
