// SPDX-License-Identifier: Apache-2.0
#ifndef KILN_TARGET_PASSES
#define KILN_TARGET_PASSES

include "mlir/Pass/PassBase.td"

def ExpandMath : Pass<"kiln-expand-math", "::mlir::func::FuncOp"> {
  let summary = "Replace math functions with polynomials that can be vectorised";
  let description = [{
    Before: math.exp, math.tanh, math.erf and others on f32 in kernel functions. After: arith, math.fma and bitcasts, with the
    errors that ExpandMath.cpp states. The polynomials are for f32; functions of other types are an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def MarkWeights : Pass<"kiln-mark-weights", "::mlir::ModuleOp"> {
  let summary = "Mark arguments of kernels that are weights";
  let description = [{
    Before: calls of kernel functions. After: an argument that is a weight in each call, not a variable one, has `kiln.weight`.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

#endif // KILN_TARGET_PASSES
