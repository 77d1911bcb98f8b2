// SPDX-License-Identifier: Apache-2.0
//
// Contractions: matrix products, their quantised inputs, and attention.
include "KilnDialect.td"

def Kiln_LinearOp : Kiln_InferredOp<"linear",
    [AttrSizedOperandSegments, Kiln_InKernel<"Contraction", "Cheap", ["decompose", "getFlops", "getAccumulatorType"]>,
     Kiln_Differentiable]> {
  let summary = "x W^T + b, or x W + b for a weight stored [in, out]";
  let description = [{
    x W^T + b for a weight stored [out, in] (`out_in`), x W + b for one stored [in, out] (`in_out`), over the last axis of x.
    With `scales`, x is a result of `kiln.quantize_rows`, and row r of the product is multiplied by
    scales[r] before the bias is added.

    ```mlir
    %0 = kiln.linear %x, %weight, %bias weight_order = out_in
        : (tensor<7x768xf32>, tensor<3072x768xf32>, tensor<3072xf32>) -> tensor<7x3072xf32>
    ```
  }];
  let arguments = (ins Kiln_NumericTensor:$x, Kiln_FloatTensor:$weight, Optional<Kiln_FloatTensor>:$bias,
                       Optional<Kiln_FloatTensor>:$scales,
                       DefaultValuedAttr<Kiln_WeightOrderAttr, "::mlir::kiln::WeightOrder::OutIn">:$weight_order);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $weight (`,` $bias^)? (`scales` $scales^)? `weight_order` `=` `` $weight_order attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Returns the weight's output dimension.
    unsigned getOutputDim() { return getWeightOrder() == WeightOrder::OutIn ? 0 : 1; }
  }];
}

def Kiln_GroupedLinearOp : Kiln_InferredOp<"grouped_linear",
    [Kiln_InKernel<"Contraction", "Cheap", ["decompose", "getFlops"]>, Kiln_IndexOperands, Kiln_Differentiable]> {
  let summary = "the linear of each row's group";
  let description = [{
    x W^T + b, or x W + b, with the weight and the bias of each row's group. Rows are sorted by group: row n has the first
    group whose end is greater than n, else the last one. Weights and biases of the groups follow one another along their
    first axis: [N, in], [groups * out, in], [groups], [groups * out] -> [N, out].

    On CPUs, kernel formation makes it a `kiln.call` for each group that has rows; other targets look up the group in the
    kernel.

    ```mlir
    %0 = kiln.grouped_linear %x, %weights, %ends, %biases weight_order = out_in
        : (tensor<7x768xf32>, tensor<24576x768xf32>, tensor<8xi32>, tensor<24576xf32>) -> tensor<7x3072xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_FloatTensor:$weight, Kiln_IntegerTensor:$ends,
                       Optional<Kiln_FloatTensor>:$bias,
                       DefaultValuedAttr<Kiln_WeightOrderAttr, "::mlir::kiln::WeightOrder::OutIn">:$weight_order);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $weight `,` $ends (`,` $bias^)? `weight_order` `=` `` $weight_order attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    int64_t getNumGroups() { return getEnds().getType().getDimSize(0); }
  }];
}

def Kiln_RowScalesOp : Kiln_InferredOp<"row_scales", [Kiln_InKernel<"Reduction", "Cheap", ["decompose"]>]> {
  let summary = "the largest magnitude of each row / 127";
  let description = [{
    The largest magnitude of each row of x (its last axis), divided by 127 in f32; NaN for a row with a NaN or an
    infinity. `kiln.quantize_rows` quantises rows with these scales.

    ```mlir
    %0 = kiln.row_scales %x : (tensor<7x768xf32>) -> tensor<7xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32]>:$x);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Kiln_QuantizeRowsOp : Kiln_InferredOp<"quantize_rows", [Kiln_InKernel<"Pointwise", "Costly">]> {
  let summary = "x / scale of its row, rounded to the nearest integer in [-127, 127]";
  let description = [{
    x / scale of its row in f32, rounded to the nearest integer, ties to even, and clamped to [-127, 127]. Zeros where the
    scale is 0, and unspecified values where it is NaN (dsl/SPEC.md, Stored weights).

    ```mlir
    %0 = kiln.quantize_rows %x, %scales : (tensor<7x768xf32>, tensor<7xf32>) -> tensor<7x768xi8>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32]>:$x, RankedTensorOf<[F32]>:$scales);
  let results = (outs RankedTensorOf<[I8]>:$result);
  let assemblyFormat = "$x `,` $scales attr-dict `:` functional-type(operands, results)";
}

def Kiln_MatmulOp : Kiln_InferredOp<"matmul", [Kiln_InKernel<"Contraction", "Cheap", ["decompose", "getFlops"]>,
                                                Kiln_Differentiable]> {
  let summary = "the product of matrices";
  let description = [{
    The product of matrices: [..., M, K] and [..., K, N] -> [..., M, N], the leading axes broadcast as NumPy does. With
    `transpose_b` the second one is [..., N, K].

    ```mlir
    %0 = kiln.matmul %a, %b transpose_b : (tensor<2x7x64xf32>, tensor<9x64xf32>) -> tensor<2x7x9xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$a, Kiln_FloatTensor:$b, UnitAttr:$transpose_b);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$a `,` $b (`transpose_b` $transpose_b^)? attr-dict `:` functional-type(operands, results)";
  let hasCanonicalizer = 1;
}

def Kiln_AttentionOp : Kiln_InferredOp<"attention",
    [AttrSizedOperandSegments, Kiln_InKernel<"Attention", "Cheap", ["decompose", "getFlops"]>, Kiln_IndexOperands, Kiln_Differentiable]> {
  let summary = "softmax(scale * Q K^T + mask) V for each head";
  let description = [{
    softmax(scale * Q K^T + mask) V for each of `heads` heads: [..., Tq, H*D], [..., Tk, H*D], [..., Tk, H*E] -> [..., Tq, H*E].
    Keys and values have `key_value_heads` heads, each shared by `heads / key_value_heads` of the queries. `causal`: query i
    sees keys 0 .. i + (Tk - Tq); with a `window`, only the last so many of these. With a
    `softcap` c the scaled scores are c tanh(scores / c). `mask` is added to the scaled scores and broadcasts to [..., Tq, Tk], or with
    one axis more than Q to [..., heads, Tq, Tk]; keys at or beyond
    `lengths` [...] are excluded. `sinks` [H] are further scores of each head, whose value is 0. The result of a query all
    of whose keys are excluded, or have a mask of at most -1e38, is 0.

    ```mlir
    %0 = kiln.attention %q, %k, %v lengths %lengths heads = 12 scale = 1.25e-1 causal
        : (tensor<2x7x768xf32>, tensor<2x7x768xf32>, tensor<2x7x768xf32>, tensor<2xi32>) -> tensor<2x7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$query, Kiln_FloatTensor:$key, Kiln_FloatTensor:$value,
                       Optional<Kiln_FloatTensor>:$mask, Optional<Kiln_FloatTensor>:$sinks,
                       Optional<Kiln_IntegerTensor>:$lengths,
                       I64Attr:$heads, OptionalAttr<I64Attr>:$key_value_heads, F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`sinks` $sinks^)? (`lengths` $lengths^)? `heads` `=` $heads
    (`key_value_heads` `=` $key_value_heads^)? `scale` `=` $scale (`causal` $causal^)? (`window` `=` $window^)?
    (`softcap` `=` $softcap^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Returns the number of key and value heads.
    int64_t getNumKeyValueHeads() { return getKeyValueHeads().value_or(getHeads()); }
  }];
}

def Kiln_AttentionScoresOp : Kiln_InferredOp<"attention_scores",
    [AttrSizedOperandSegments, Kiln_InKernel<"Contraction", "Cheap", ["decompose", "getFlops"]>, Kiln_IndexOperands, Kiln_Differentiable]> {
  let summary = "scale * Q K^T + mask for each head";
  let description = [{
    The scores of `attention` before its softmax: [..., Tq, H*D], [..., Tk, G*D] -> [..., H, Tq, Tk]. All operands but the
    values and the sinks are those of `attention`; the score of an excluded key is -3e38.

    ```mlir
    %0 = kiln.attention_scores %q, %k heads = 12 scale = 1.25e-1 causal
        : (tensor<2x7x768xf32>, tensor<2x7x768xf32>) -> tensor<2x12x7x7xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$query, Kiln_FloatTensor:$key,
                       Optional<Kiln_FloatTensor>:$mask, Optional<Kiln_IntegerTensor>:$lengths,
                       I64Attr:$heads, OptionalAttr<I64Attr>:$key_value_heads, F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key (`mask` $mask^)? (`lengths` $lengths^)? `heads` `=` $heads
    (`key_value_heads` `=` $key_value_heads^)? `scale` `=` $scale (`causal` $causal^)? (`window` `=` $window^)?
    (`softcap` `=` $softcap^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Returns the number of key heads.
    int64_t getNumKeyValueHeads() { return getKeyValueHeads().value_or(getHeads()); }
  }];
}
