// SPDX-License-Identifier: Apache-2.0
//
// Ops that look up table rows by index, and ops that create indices.
include "KilnDialect.td"

def Kiln_EmbeddingOp : Kiln_InferredOp<"embedding", [Kiln_InKernel<"Lookup">, Kiln_IndexOperands, Kiln_Differentiable]> {
  let summary = "a row of the table for each index";
  let description = [{
    A row of the table for each index: [...] and [V, D] -> [..., D].

    ```mlir
    %0 = kiln.embedding %tokens, %table : (tensor<7xi32>, tensor<50257x768xf32>) -> tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_IntegerTensor:$indices, Kiln_FloatTensor:$table);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$indices `,` $table attr-dict `:` functional-type(operands, results)";
}

def Kiln_ScatterAddOp : Kiln_Op<"scatter_add", [Pure, Kiln_HostOp, Kiln_IndexOperands]> {
  let summary = "sums of the rows with equal indices";
  let description = [{
    A table whose row v is the sum of all rows with the index v, in their order, or zeros if there is none: the gradient of
    a look-up. Indices are clamped to the table, as for `kiln.embedding`.

    ```mlir
    %0 = kiln.scatter_add %tokens, %rows : (tensor<7xi32>, tensor<7x768xf32>) -> tensor<50257x768xf32>
    ```
  }];
  let arguments = (ins Kiln_IntegerTensor:$indices, RankedTensorOf<[F32]>:$rows);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$indices `,` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Kiln_IndexAddOp : Kiln_Op<"index_add", [Pure, Kiln_HostOp, Kiln_IndexOperands, Kiln_Differentiable, AllTypesMatch<["x", "result"]>]> {
  let summary = "a table plus rows at indices";
  let description = [{
    The table x [V, D] with row r [D] added to its row indices[r], in their order. Rows whose index is outside of the table
    are ignored. CPUs call a function of the run time; for other targets `kiln-expand-sorts` rewrites the op.

    ```mlir
    %0 = kiln.index_add %x, %indices, %rows : (tensor<9x16xf32>, tensor<7xi32>, tensor<7x16xf32>) -> tensor<9x16xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32, I32]>:$x, Kiln_IntegerTensor:$indices, RankedTensorOf<[F32, I32]>:$rows);
  let results = (outs RankedTensorOf<[F32, I32]>:$result);
  let assemblyFormat = "$x `,` $indices `,` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Kiln_ArgsortOp : Kiln_Op<"argsort", [Pure, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "the sorted positions of the elements of an axis";
  let description = [{
    The positions of the elements of `axis` in ascending or `descending` order. Equal elements keep their order, and NaN is
    larger than any number. The result may have fewer elements along the axis, which are the first positions. CPUs call a
    function of the run time; for other targets `kiln-expand-sorts` rewrites the op.

    ```mlir
    %0 = kiln.argsort %x axis = 1 : (tensor<7x768xf32>) -> tensor<7x768xi32>
    %1 = kiln.argsort %x axis = 1 descending : (tensor<7x768xf32>) -> tensor<7x4xi32>
    ```
  }];
  let arguments = (ins Kiln_NumericTensor:$x, I64Attr:$axis, UnitAttr:$descending);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = "$x `axis` `=` $axis (`descending` $descending^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Kiln_PositionsOp : Kiln_InferredOp<"positions", [Kiln_InKernel<"Lookup", "Free">]> {
  let summary = "0, 1, ... along an axis of its operand";
  let description = [{
    0, 1, ... T - 1, where T is the extent of the operand's axis `axis`. The operand's values do not matter.

    ```mlir
    %0 = kiln.positions %tokens axis = 0 : (tensor<7xi32>) -> tensor<7xi32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x, I64Attr:$axis);
  let results = (outs Kiln_IntegerTensor:$result);
  let assemblyFormat = "$x `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
}

def Kiln_SinusoidalOp : Kiln_Op<"sinusoidal", [Pure, Kiln_Rewritten, Kiln_Differentiable]> {
  let summary = "the sinusoidal position encoding";
  let description = [{
    The sinusoidal encoding of Vaswani et al. (2017, section 3.5): column 2i of position p is sin(p / base^(2i / D)) and
    column 2i + 1 is cos of the same. The base is 10000 unless given. `frequencies` are those of the pairs in place of the
    powers of the base, in radians. With `axes`, pair i reads the positions at axes[i] along their first axis, which the
    result does not have. f32 positions that are not between -2^31 and 2^31 give NaN.

    ```mlir
    %0 = kiln.sinusoidal %positions : (tensor<7xi32>) -> tensor<7x512xf32>
    %1 = kiln.sinusoidal %places frequencies = [1.0, 0.25] axes = [0, 1] : (tensor<2x7xf32>) -> tensor<7x4xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[I32, F32]>:$positions, DefaultValuedAttr<F64Attr, "10000.0">:$base,
                       DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$frequencies,
                       DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$axes);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $positions (`base` `=` $base^)? (`frequencies` `=` $frequencies^)? (`axes` `=` $axes^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Returns the frequency of each pair of columns, in radians.
    SmallVector<double> getPairFrequencies();
  }];
  let hasVerifier = 1;
}

def Kiln_GatherOp : Kiln_InferredOp<"gather", [Kiln_InKernel<"Lookup">, Kiln_IndexOperands, Kiln_Differentiable]> {
  let summary = "slices of the table by index along an axis";
  let description = [{
    Slices of the table by index along an axis: the axis `axis` of the table is replaced by the shape of the indices.

    ```mlir
    %0 = kiln.gather %table, %indices axis = 1 : (tensor<4x9xf32>, tensor<2x3xi32>) -> tensor<4x2x3xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$table, Kiln_IntegerTensor:$indices, I64Attr:$axis);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$table `,` $indices `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
}
