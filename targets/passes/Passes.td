// SPDX-License-Identifier: Apache-2.0
#ifndef KILN_TARGET_PASSES
#define KILN_TARGET_PASSES

include "mlir/Pass/PassBase.td"

def ExpandMath : Pass<"kiln-expand-math", "::mlir::func::FuncOp"> {
  let summary = "Replace functions of the math library by polynomials that vectorise";
  let description = [{
    Before: math.exp, math.tanh, math.erf and others on f32 in kernel functions. After: arith, math.fma and bitcasts, with the
    errors that ExpandMath.cpp states. The polynomials are f32's: a function of another type is refused.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // KILN_TARGET_PASSES
