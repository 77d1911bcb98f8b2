// SPDX-License-Identifier: Apache-2.0
//
// Kernel passes that only some targets use.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::func {
class FuncOp;
}

namespace mlir::kiln {

#define GEN_PASS_DECL
#include "targets/passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "targets/passes/Passes.h.inc"

/// A hook for targets whose compilers need to know which arguments are weights.
void addMarkWeights(OpPassManager &passes);
/// A hook for targets whose compilers have no vectorised math functions.
void addExpandMath(OpPassManager &passes);

} // namespace mlir::kiln
