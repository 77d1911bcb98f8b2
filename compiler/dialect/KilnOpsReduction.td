// SPDX-License-Identifier: Apache-2.0
//
// Ops along one axis: normalisation and reduction.
include "KilnDialect.td"

class Kiln_SoftmaxLikeOp<string mnemonic, string formula>
    : Kiln_Op<mnemonic, [Pure, SameOperandsAndResultType, Kiln_InKernel<"Reduction", "Cheap", ["decompose"]>, Kiln_Differentiable]> {
  let summary = formula;
  let description = formula # [{ along `axis`.

    ```mlir
    %0 = kiln.}] # mnemonic # [{ %x axis = 1 : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, I64Attr:$axis);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x `axis` `=` $axis attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kiln_SoftmaxOp : Kiln_SoftmaxLikeOp<"softmax", "e^x / sum(e^x)">;
def Kiln_LogSoftmaxOp : Kiln_SoftmaxLikeOp<"log_softmax", "x - log(sum(e^x))">;

def Kiln_LayerNormOp : Kiln_InferredOp<"layer_norm", [Kiln_RowNorm, Kiln_InKernel<"Reduction", "Cheap", ["decompose"]>, Kiln_Differentiable]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) weight + bias over the last axis";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis (Ba et al. 2016).

    ```mlir
    %0 = kiln.layer_norm %x, %weight, %bias epsilon = 1.0e-5
        : (tensor<7x768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_FloatTensor:$weight, Kiln_FloatTensor:$bias, F64Attr:$epsilon);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $weight `,` $bias `epsilon` `=` $epsilon attr-dict `:` functional-type(operands, results)
  }];
}

def Kiln_RmsNormOp : Kiln_InferredOp<"rms_norm", [Kiln_RowNorm, Kiln_InKernel<"Reduction", "Cheap", ["decompose"]>, Kiln_Differentiable]> {
  let summary = "x / sqrt(mean(x^2) + epsilon) weight over the last axis";
  let description = [{
    x / sqrt(mean(x^2) + epsilon) * weight over the last axis (Zhang and Sennrich 2019).

    ```mlir
    %0 = kiln.rms_norm %x, %weight epsilon = 1.0e-5 : (tensor<7x768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_FloatTensor:$weight, F64Attr:$epsilon);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $weight `epsilon` `=` $epsilon attr-dict `:` functional-type(operands, results)
  }];
}

class Kiln_ReductionOp<string mnemonic, string what, string element, Type operandType, Type resultType>
    : Kiln_InferredOp<mnemonic, [Kiln_InKernel<"Reduction", "Cheap", ["decompose"]>, Kiln_Differentiable]> {
  let summary = what # " along an axis";
  let description = what # [{ along `axis`, which the result does not have.

    ```mlir
    %0 = kiln.}] # mnemonic # [{ %x axis = 1 : (tensor<7x768xf32>) -> tensor<7x}] # element # [{>
    ```
  }];
  let arguments = (ins operandType:$x, I64Attr:$axis);
  let results = (outs resultType:$result);
  let assemblyFormat = "$x `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
}

def Kiln_MeanOp : Kiln_InferredOp<"mean", [Kiln_InKernel<"Reduction", "Cheap", ["decompose"]>, Kiln_Differentiable]> {
  let summary = "the mean along an axis";
  let description = [{
    The mean along `axis`, which the result does not have. With `shifted`, for norms, it is that of the differences from
    the first element, plus that element: exact for equal elements.

    ```mlir
    %0 = kiln.mean %x axis = 1 : (tensor<7x768xf32>) -> tensor<7xf32>
    %1 = kiln.mean %x axis = 1 shifted : (tensor<7x768xf32>) -> tensor<7xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, I64Attr:$axis, UnitAttr:$shifted);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x `axis` `=` $axis (`shifted` $shifted^)? attr-dict `:` functional-type(operands, results)";
}
def Kiln_MaxOp : Kiln_ReductionOp<"max", "the largest element, NaN if there is one,", "f32", Kiln_NumericTensor, Kiln_NumericTensor>;
def Kiln_SumOp : Kiln_ReductionOp<"sum", "the sum", "f32", Kiln_NumericTensor, Kiln_NumericTensor>;
def Kiln_CumsumOp : Kiln_Op<"cumsum", [Pure, SameOperandsAndResultType, Kiln_InKernel<"Reduction", "Cheap", ["decompose"]>, Kiln_Differentiable]> {
  let summary = "running sums along an axis";
  let description = [{
    The sum of each element and those before it along `axis`; with `reverse`, for its gradient, of those after it. CPUs add
    in that order, the farthest element first; GPUs add tiles of a line in a fixed order.

    ```mlir
    %0 = kiln.cumsum %x axis = 1 : tensor<7x768xf32>
    %1 = kiln.cumsum %x axis = 1 reverse : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_NumericTensor:$x, I64Attr:$axis, UnitAttr:$reverse);
  let results = (outs Kiln_NumericTensor:$result);
  let assemblyFormat = "$x `axis` `=` $axis (`reverse` $reverse^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Kiln_ArgmaxOp : Kiln_ReductionOp<"argmax", "the index of the first largest element, or NaN,", "i32", Kiln_NumericTensor, Kiln_IntegerTensor>;
