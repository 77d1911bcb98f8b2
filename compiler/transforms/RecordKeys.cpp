// SPDX-License-Identifier: Apache-2.0
//
// A kernel's key describes what it computes, not how a target approximates it: it is recorded before the target's
// passes.
#include "compiler/transforms/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/kernel/KernelKey.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_RECORDKEYS
#include "compiler/transforms/Passes.h.inc"

namespace {

struct RecordKeys : impl::RecordKeysBase<RecordKeys> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (::kiln::isKernel(function))
        ::kiln::recordKey(function);
  }
};

} // namespace
} // namespace mlir::kiln
