// SPDX-License-Identifier: Apache-2.0
//
// Passes over kernels that some targets want and others do not.
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

/// The hook of a target whose compilers want to know what is a weight.
void addMarkWeights(OpPassManager &passes);
/// The hook of a target whose compilers have no functions of the math library that vectorise.
void addExpandMath(OpPassManager &passes);

} // namespace mlir::kiln
