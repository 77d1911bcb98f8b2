// SPDX-License-Identifier: Apache-2.0
//
// Ops of lowered kernels, next to those of linalg: they are generated apart from the ops of models, since targets
// include only these (compiler/dialect/KernelAttention.h).
include "KilnDialect.td"

def Kiln_KernelAttentionOp : Kiln_Op<"kernel_attention", [Pure, AttrSizedOperandSegments]> {
  let summary = "attention in a lowered kernel";
  let description = [{
    Attention until code generation, over the loops b.., h, q, k, d, e: batch axes, heads, queries, keys, and the
    channels of queries and keys and of values, whose extents over the kernel's symbols are `over`:

        scores[b, h, q, k] = score(scale * log2(e) * sum_d query[b, h, q, d] key[b, h, k, d])
        weights[b, h, q, k] = weight(scores[b, h, q, k], maximum over k of them)
        result[b, q, h, e] = sum_k weights[b, h, q, k] value[b, h, k, e] / sum_k weights[b, h, q, k]

    `query`, `key`, `value` and `score` are regions whose first arguments are elements of the operands before them, at
    the indices of the maps; a map of keys or values divides the head by the heads of a group. They yield an f32.
    `score` modifies a score in log2 units, its last argument, by a mask, and may also yield a number of keys, the
    length. `weight` is 2^(score - maximum), or what approximates it. `sink`, if there is one, yields the weight of a
    further score of each head, whose value is 0, from the maximum, its last argument: the sum of the weights includes
    it. With `may_be_empty` the result of a query whose maximum shows that all of its keys are masked out is 0.

    Only keys within the limits count: with `causal`, an offset over the symbols, query q attends to keys up to
    q + offset, with a `window` only to the last so many of these, and with a length to keys below it.

    ```mlir
    %0 = kiln.kernel_attention scale = 1.25e-1 causal affine_map<() -> (2)> over affine_map<() -> (4, 7, 9, 64, 64)>
        query(%q : tensor<7x4x64xf32>) [affine_map<(h, q, k, d, e) -> (q, h, d)>] {
        ^bb0(%x: f32):
          kiln.kernel_yield %x : f32
        } key(%k : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, d)>] {
        ^bb0(%x: f32):
          kiln.kernel_yield %x : f32
        } value(%v : tensor<9x2x64xf32>) [affine_map<(h, q, k, d, e) -> (k, h floordiv 2, e)>] {
        ^bb0(%x: f32):
          kiln.kernel_yield %x : f32
        } score [] {
        ^bb0(%score: f32):
          kiln.kernel_yield %score : f32
        } weight {
        ^bb0(%score: f32, %maximum: f32):
          %difference = arith.subf %score, %maximum : f32
          %weight = math.exp2 %difference : f32
          kiln.kernel_yield %weight : f32
        } -> tensor<7x4x64xf32>
    ```
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$query, Variadic<Kiln_Tensor>:$key, Variadic<Kiln_Tensor>:$value,
                       Variadic<Kiln_Tensor>:$score, Variadic<Kiln_Tensor>:$sink, F64Attr:$scale,
                       OptionalAttr<AffineMapAttr>:$causal, OptionalAttr<I64Attr>:$window, UnitAttr:$may_be_empty,
                       AffineMapAttr:$over,
                       AffineMapArrayAttr:$query_maps, AffineMapArrayAttr:$key_maps, AffineMapArrayAttr:$value_maps,
                       AffineMapArrayAttr:$score_maps, OptionalAttr<AffineMapArrayAttr>:$sink_maps);
  let results = (outs RankedTensorOf<[Kiln_Element<"isFloatingNumber", "floating-point">]>:$result);
  let regions = (region SizedRegion<1>:$query_element, SizedRegion<1>:$key_element, SizedRegion<1>:$value_element,
                        SizedRegion<1>:$score_element, SizedRegion<1>:$weight_element, AnyRegion:$sink_element);
  let assemblyFormat = [{
    `scale` `=` $scale (`causal` $causal^ (`window` `=` $window^)?)? (`may_be_empty` $may_be_empty^)? `over` $over
    `query` `(` $query `:` type($query) `)` $query_maps $query_element
    `key` `(` $key `:` type($key) `)` $key_maps $key_element
    `value` `(` $value `:` type($value) `)` $value_maps $value_element
    `score` (`(` $score^ `:` type($score) `)`)? $score_maps $score_element
    `weight` $weight_element (`sink` `(` $sink^ `:` type($sink) `)` $sink_maps $sink_element)? attr-dict
    `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Returns the extents of the loops, over the kernel's symbols.
    ::llvm::ArrayRef<::mlir::AffineExpr> getLoopExtents() { return getOver().getResults(); }
    /// Returns the number of batch axes, whose loops come first; then come those of heads, queries, keys, channels.
    unsigned getBatchRank() { return getOver().getNumResults() - 5; }
    /// Returns the offset of the last key of a query from the query; null if keys have no such limit.
    ::mlir::AffineExpr getCausalOffset() {
      return getCausal() ? getCausal()->getResult(0) : ::mlir::AffineExpr();
    }
    /// Whether there is a further score of each head.
    bool hasSink() { return !getSinkElement().empty(); }
    /// Whether the score region yields a length, too.
    bool hasLengths() { return getScoreElement().front().getTerminator()->getNumOperands() == 2; }
  }];
  let hasVerifier = 1;
}

def Kiln_KernelIndexOp : Kiln_Op<"kernel_index", [Pure, ParentOneOf<["KernelAttentionOp"]>]> {
  let summary = "the index of a loop of kernel_attention";
  let description = [{
    The index of a loop, as `linalg.index` in a linalg op.

    ```mlir
    %0 = kiln.kernel_index 3
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$loop);
  let results = (outs Index:$result);
  let assemblyFormat = "$loop attr-dict";
}

def Kiln_KernelYieldOp : Kiln_Op<"kernel_yield", [Pure, Terminator, ParentOneOf<["KernelAttentionOp"]>]> {
  let summary = "the element that a region of kernel_attention computes";
  let description = [{
    Ends a region of `kernel_attention` with the element that it computes.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}
