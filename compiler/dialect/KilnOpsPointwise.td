// SPDX-License-Identifier: Apache-2.0
//
// The ops that work on each element alone.
include "KilnDialect.td"

class Kiln_BinaryOp<string mnemonic, list<Trait> traits = []> : Kiln_InferredOp<mnemonic, traits> {
  let arguments = (ins Kiln_NumericTensor:$lhs, Kiln_NumericTensor:$rhs);
  let results = (outs Kiln_NumericTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Kiln_AddOp : Kiln_BinaryOp<"add", [Commutative]> {
  let summary = "x + y";
  let description = [{
    x + y; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.add %x, %y : (tensor<7x768xf32>, tensor<768xf32>) -> tensor<7x768xf32>
    ```
  }];
}

def Kiln_SubOp : Kiln_BinaryOp<"sub"> {
  let summary = "x - y";
  let description = [{
    x - y; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.sub %x, %y : (tensor<7x768xf32>, tensor<7x1xf32>) -> tensor<7x768xf32>
    ```
  }];
}

def Kiln_MulOp : Kiln_BinaryOp<"mul", [Commutative]> {
  let summary = "x y";
  let description = [{
    x y, element by element; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.mul %x, %y : (tensor<7x768xf32>, tensor<f32>) -> tensor<7x768xf32>
    ```
  }];
}

def Kiln_DivOp : Kiln_BinaryOp<"div"> {
  let summary = "x / y";
  let description = [{
    x / y; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.div %x, %y : (tensor<7x768xf32>, tensor<f32>) -> tensor<7x768xf32>
    ```
  }];
}

def Kiln_MaximumOp : Kiln_BinaryOp<"maximum", [Commutative]> {
  let summary = "the larger one of x and y";
  let description = [{
    The larger one of x and y, NaN if one of them is; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.maximum %x, %y : (tensor<7x768xf32>, tensor<f32>) -> tensor<7x768xf32>
    ```
  }];
}

def Kiln_LessOp : Kiln_InferredOp<"less"> {
  let summary = "whether x < y";
  let description = [{
    Whether x < y; the operands broadcast as NumPy does.

    ```mlir
    %0 = kiln.less %x, %y : (tensor<7x1xi32>, tensor<4xi32>) -> tensor<7x4xi1>
    ```
  }];
  let arguments = (ins Kiln_NumericTensor:$lhs, Kiln_NumericTensor:$rhs);
  let results = (outs Kiln_BooleanTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Kiln_WhereOp : Kiln_InferredOp<"where"> {
  let summary = "x where a condition holds, y elsewhere";
  let description = [{
    x where the condition holds, y elsewhere; the three broadcast as NumPy does. Of the other one nothing is seen, be it NaN.

    ```mlir
    %0 = kiln.where %condition, %x, %y : (tensor<7x1xi1>, tensor<7x768xf32>, tensor<f32>) -> tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_BooleanTensor:$condition, Kiln_Tensor:$lhs, Kiln_Tensor:$rhs);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

class Kiln_UnaryOp<string mnemonic, string formula> : Kiln_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let summary = formula;
  let description = formula # [{, element by element.

    ```mlir
    %0 = kiln.}] # mnemonic # [{ %x : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Kiln_ExpOp : Kiln_UnaryOp<"exp", "e^x">;
def Kiln_LogOp : Kiln_UnaryOp<"log", "the natural logarithm of x">;
def Kiln_SqrtOp : Kiln_UnaryOp<"sqrt", "the square root of x">;
def Kiln_TanhOp : Kiln_UnaryOp<"tanh", "the hyperbolic tangent of x">;
def Kiln_SigmoidOp : Kiln_UnaryOp<"sigmoid", "1 / (1 + e^-x)">;
def Kiln_ReluOp : Kiln_UnaryOp<"relu", "max(x, 0)">;
def Kiln_GeluOp : Kiln_UnaryOp<"gelu", "x (1 + erf(x / sqrt(2))) / 2">;
def Kiln_GeluTanhOp : Kiln_UnaryOp<"gelu_tanh", "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2">;
def Kiln_SiluOp : Kiln_UnaryOp<"silu", "x / (1 + e^-x)">;
