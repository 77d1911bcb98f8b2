// SPDX-License-Identifier: Apache-2.0
//
// Data movement ops, which do not change elements.
include "KilnDialect.td"

def Kiln_ReshapeOp : Kiln_Op<"reshape", [Pure, Kiln_HostOp, Kiln_InKernel<"View", "Free">, Kiln_Differentiable]> {
  let summary = "the same elements in another shape";
  let description = [{
    The same elements, in row-major order, in another shape.

    ```mlir
    %0 = kiln.reshape %x : tensor<7x768xf32> -> tensor<7x12x64xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Kiln_ExpandOp : Kiln_Op<"expand", [Pure, Kiln_Pointwise<>, Kiln_Differentiable]> {
  let summary = "broadcast to a shape";
  let description = [{
    x broadcast to the result's shape as NumPy does.

    ```mlir
    %0 = kiln.expand %x : tensor<1x768xf32> -> tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Returns the operand's element.
    ::mlir::Value compute(ElementBuilder &builder, ::llvm::ArrayRef<::mlir::Value> x);
  }];
}

def Kiln_TransposeOp : Kiln_InferredOp<"transpose", [Kiln_InKernel<"Movement", "Free">, Kiln_Differentiable]> {
  let summary = "the axes in another order";
  let description = [{
    The axes in another order: axis i of the result is axis `permutation[i]` of x.

    ```mlir
    %0 = kiln.transpose %x permutation = [1, 0, 2] : (tensor<7x12x64xf32>) -> tensor<12x7x64xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$x `permutation` `=` $permutation attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Kiln_ConcatOp : Kiln_InferredOp<"concat", [Kiln_InKernel<"Lookup", "Costly", ["getResizedAxes"]>, Kiln_Differentiable]> {
  let summary = "tensors one after another along an axis";
  let description = [{
    Tensors one after another along an axis; the other extents are equal.

    ```mlir
    %0 = kiln.concat %x, %y axis = 0 : (tensor<7x64xf32>, tensor<2x64xf32>) -> tensor<9x64xf32>
    ```
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$inputs `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Kiln_SliceOp : Kiln_Op<"slice", [Pure, Kiln_InKernel<"Movement", "Free", ["getResizedAxes"]>, Kiln_Differentiable]> {
  let summary = "a range of an axis";
  let description = [{
    The elements of x from `start` on along `axis`, as many as the result has; with `at_end` the last ones.

    ```mlir
    %0 = kiln.slice %x axis = 1 start = 768 : tensor<7x2304xf32> -> tensor<7x768xf32>
    %1 = kiln.slice %x axis = 0 start = 0 at_end : tensor<7x2304xf32> -> tensor<1x2304xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x, I64Attr:$axis, I64Attr:$start, UnitAttr:$at_end);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$x `axis` `=` $axis `start` `=` $start (`at_end` $at_end^)? attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
