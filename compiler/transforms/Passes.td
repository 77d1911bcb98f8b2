// SPDX-License-Identifier: Apache-2.0
//
// The compiler's passes. Only Pipeline.cpp orders them.
#ifndef KILN_PASSES
#define KILN_PASSES

include "mlir/Pass/PassBase.td"

def MergeProjections : Pass<"kiln-merge-projections", "::mlir::ModuleOp"> {
  let summary = "Merge the projections of one value that an attention reads";
  let description = [{
    Before: three linears of the same value, each read only by one attention.
    ```mlir
    %q = kiln.linear %x, %wq ...   %k = kiln.linear %x, %wk ...   %v = kiln.linear %x, %wv ...
    %y = kiln.attention %q, %k, %v ...
    ```
    After: one linear with a parameter of three sources; the attention reads slices of it.

    Between them may be a split into heads and operations on heads, such as norms and rotary positions. Heads are then split
    from the merged result; equal operations on queries and keys are merged:
    ```mlir
    %qkv = kiln.linear ...   %heads = kiln.reshape %qkv ...   %both = kiln.slice %heads ...
    %turned = ... rotary positions of %both ...   %q = kiln.slice %turned ...   %k = kiln.slice %turned ...
    ```

    Assumes that nothing else uses the weights and biases, in any entry, unless it merges the same ones; all of the linears have
    a bias or none has. Runs after differentiation: a weight that a backward pass also reads is not merged.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def RecognizeAttention : Pass<"kiln-recognize-attention", "::mlir::func::FuncOp"> {
  let summary = "Recognise attention";
  let description = [{
    Before: matmul(softmax(scale * matmul(q, transpose(k)) + mask), v), with the heads split by reshape and transpose, or as
    separate batch axes. After: kiln.attention of the values from which the heads were split. A constant mask that is 0 on and
    below the diagonal and at most -1e9 above becomes `causal`.

    Assumes canonical IR. The intermediate values must have no other use. Does nothing in a module that is marked as having
    had its attention recognised before its entries were cut.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def Shard : Pass<"kiln-shard", "::mlir::ModuleOp"> {
  let summary = "Shard a model among ranks (tensor parallelism)";
  let description = [{
    Tensor parallelism (Shoeybi et al. 2019, "Megatron-LM", section 3). Before: the program of one process. After: the program
    of each rank; the first layers are split by outputs, attention by heads, the last layer by inputs, whose partial sums are
    all-reduced.
    ```mlir
    %w1 = kiln.parameter {sources = ["fc1.weight"]} : tensor<3072x768xf32>
    %h = kiln.linear %x, %w1, %b1 ...   %a = kiln.gelu %h   %y = kiln.linear %a, %w2, %b2 ...
    ```
    With 4 ranks:
    ```mlir
    module attributes {kiln.ranks = 4, kiln.shards = {fc1.weight = #kiln.shard<0, [3072]>, ...}}
    %w1 = kiln.parameter {sources = ["fc1.weight"]} : tensor<768x768xf32>
    %h = kiln.linear %x, %w1, %b1 ...   %a = kiln.gelu %h   %p = kiln.linear %a, %w2 ...
    %s = kiln.all_reduce %p   %y = kiln.add %s, %b2
    ```
    Weights and states have the shape of a rank's shard. Values that cannot be split evenly are replicated. Partial sums of f16
    and bf16 are added in f32 and the sum is rounded, unless communicators support sums of these types (`sums-half`).

    With `parts`, each rank has an equal number of parts, and the model is split as for that number of ranks. A single rank then
    has all-reduces, too, which `kiln-reduction-parts` replaces with sums of the parts.

    Assumes canonical IR in which attention was recognised, and entries for single sequences.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"ranks", "ranks", "int64_t", /*default=*/"2", "the number of tensor-parallel ranks">,
                 Option<"parts", "parts", "int64_t", /*default=*/"0", "the number of parts of sums; 0: one for each rank">,
                 Option<"sumsHalf", "sums-half", "bool", /*default=*/"false", "all-reduce f16 and bf16 without conversion to f32">];
}

def ReductionParts : Pass<"kiln-reduction-parts", "::mlir::ModuleOp"> {
  let summary = "Replace sums over ranks with sums of a fixed number of parts";
  let description = [{
    Before: the result of `kiln-shard` with `parts`, and its gradients.
    ```mlir
    module attributes {kiln.ranks = 2, kiln.reduction_parts = 4, kiln.shards = {fc2.weight = #kiln.shard<1, [3072]>, ...}}
    %p = kiln.linear %a, %w2 weight_order = out_in : (tensor<7x1536xf32>, tensor<768x1536xf32>) -> tensor<7x768xf32>
    %s = kiln.all_reduce %p
    ```
    After:
    ```mlir
    %p = kiln.matmul %parts, %weights transpose_b : (tensor<2x7x768xf32>, tensor<2x768x768xf32>) -> tensor<2x7x768xf32>
    %own = kiln.add %p0, %p1   %all = kiln.all_gather %own   %s = kiln.add %all0, %all1
    ```
    The parts are added in a binary tree that does not depend on the number of ranks: with batch-invariant kernels results are
    bitwise equal for every number. A sum may have the results of several layers, such as the gradient of a value that they
    read. Other sums over ranks are an error.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def ShardRows : Pass<"kiln-shard-rows", "::mlir::ModuleOp"> {
  let summary = "Shard the rows between split layers (sequence parallelism)";
  let description = [{
    Sequence parallelism (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", section 4.2.2).
    Before: the result of `kiln-shard`, in which each rank has all rows of norms and residuals.
    ```mlir
    %s = kiln.all_reduce %p : tensor<8x768xf32>   %y = kiln.add %x, %s   %n = kiln.rms_norm %y, %w   %all = kiln.to_ranks %n
    ```
    After, with 2 ranks:
    ```mlir
    %s = kiln.reduce_scatter %p2 : tensor<2x4x768xf32> -> tensor<4x768xf32>   %y = kiln.add %x, %s   %n = kiln.rms_norm %y, %w2
    %all = kiln.all_gather %n apart : tensor<4x768xf32> -> tensor<2x4x768xf32>
    ```
    Rows are an axis other than the last one, with a fixed extent that the number of ranks divides. Entries without such an axis
    do not change, with a remark; if there are no others, that is an error. Dropout drops other elements than in one process.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def CutStages : Pass<"kiln-cut-stages", "::mlir::ModuleOp"> {
  let summary = "Split the stack of each entry into pipeline stages";
  let description = [{
    Pipeline parallelism (Huang et al. 2019, "GPipe"). Before: entries with one stack each.
    ```mlir
    func.func @forward(%tokens) -> tensor<7x63xf32> attributes {kiln.entry} {
      %x = kiln.embedding ...   %y = kiln.repeat 12 (%h = %x) {...}   %logits = kiln.linear %y ...
    ```
    After, with 4 stages: a function for each stage role, which computes the values that the stage sends or returns.
    ```mlir
    func.func @forward_first(%tokens) attributes {kiln.entry} {
      %x = kiln.embedding ...   %y = kiln.repeat 3 (%h = %x) {...}   kiln.send %y
    func.func @forward_last(%tokens) -> tensor<7x63xf32> attributes {kiln.entry} {
      %x = kiln.receive   %y = kiln.repeat 3 (%h = %x) {...}   %logits = kiln.linear %y ...
    func.func @forward_middle(%tokens) attributes {kiln.entry} {
      %x = kiln.receive   %y = kiln.repeat 3 (%h = %x) {...}   kiln.send %y
    ```
    Parameters and states of the stack have a copy for each layer of a stage. Each stage computes the other values that layers
    read, such as angles of positions. If the number of stages does not divide the layers, the stages just before the last one
    have one more each: of 9 layers the third of 4 stages has 3. It then has a separate role, `middle2`.

    An entry must have one stack with at least one layer for each stage, without stacks in its layers, and no states but those
    of the layers; no op may read the stacked results of all layers. Otherwise that is an error.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"stages", "stages", "int64_t", /*default=*/"2", "the number of pipeline stages">];
}

def LayOutWeights : Pass<"kiln-lay-out-weights", "::mlir::ModuleOp"> {
  let summary = "Choose the tiled layout of the weights that contractions read";
  let description = [{
    Before: `kiln.parameter ... : tensor<3072x768xf32>` read by a linear. After: `tensor<3072x768xf32, #kiln.tiled<0, 48>>`: the
    dimension of the outputs is split by the target's tile size. All users read the layout, such as an embedding whose table is
    the weight of the logits. Weights that ops other than linear, matmul and embedding read stay dense, and so do those that are
    multiplied both ways, x W and y W^T, unless they are quantised. Weights that are multiplied by int8 rows have the interleave
    of the target's dot-product instructions.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"tile", "tile", "int64_t", /*default=*/"0", "the tile size of every weight, without a target">,
                 Option<"word", "word", "int64_t", /*default=*/"1", "the interleave along K for int8 rows">];
}

def DeriveWeights : Pass<"kiln-derive-weights", "::mlir::ModuleOp"> {
  let summary = "Compute values that depend only on weights when these are bound";
  let description = [{
    Before: `kiln.div %weight, %root` with `%root` the root of `kiln.add %variance, %epsilon`, all of weights. After: a
    `kiln.parameter` that is `derived`, and a function with `kiln.derives` that computes the quotient and assigns it, in loops
    over layers if the weights are in such loops. Only costly values are derived (a division, a function, a sum, a matrix
    product), from unquantised weights and constants. Does nothing in libraries that write weights or are split among processes.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect", "::mlir::func::FuncDialect"];
}

def FormKernels : Pass<"kiln-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group ops into kernel functions";
  let description = [{
    Before: entry functions of kiln ops. After: entry functions of kiln.call, parameters, constants, views and loops; each call's
    kernel function still holds kiln ops, over its own symbols, with leading axes collapsed where all ops work on rows.

    KernelGroups.h describes the grouping. With `writes-states`, columns of a kernel's result that are appended to a
    state are a separate result, so that they can be written to the state in place. With `norms-single-rows`, all GEMVs of a
    normalised row form one kernel with the norm. With `joins-sums`, a small sum that only another sum reads is fused with it.
  }];
  let options = [Option<"writesStates", "writes-states", "bool", /*default=*/"false", "separate results for rows of states">,
                 Option<"normsSingleRows", "norms-single-rows", "bool", /*default=*/"false", "fuse a norm of one row with its products">,
                 Option<"joinsSums", "joins-sums", "bool", /*default=*/"false", "fuse small sums with the sums that read them">];
  let dependentDialects = ["::mlir::kiln::KilnDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}

def LowerKernels : Pass<"kiln-lower-kernels", "::mlir::func::FuncOp"> {
  let summary = "Decompose the ops of kernel functions into linalg on tensors";
  let description = [{
    Before: a kernel function of kiln ops. After: linalg.generic over tensor.empty; `kiln.inplace` lists the arguments with which
    the result may share memory. Other functions do not change.
  }];
  let options = [Option<"batchInvariant", "batch-invariant", "bool", "false",
                        "Also round values inside a kernel to the 16-bit floats of the model">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AllowTf32 : Pass<"kiln-allow-tf32", "::mlir::func::FuncOp"> {
  let summary = "Allow kernels to round f32 factors to tf32";
  let description = [{
    Before: kernel functions of linalg. After: `kiln.tf32` on those that sum products of f32, except strict ones: a target with
    tensor cores may round factors to ten bits of mantissa. Sums stay f32.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def KeepOrder : Pass<"kiln-keep-order", "::mlir::func::FuncOp"> {
  let summary = "Mark kernels as batch-invariant";
  let description = [{
    Before: kernel functions of linalg. After: `kiln.batch_invariant` on those with floats: the bits of a result row
    must not depend on the number of rows, the shape-specialised variant or the schedule.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def SlideStates : Pass<"kiln-slide-states", "::mlir::ModuleOp"> {
  let summary = "Keep the last rows of streams in place";
  let description = [{
    Before: windows over streams, of which each call copies the last rows to a state.
    ```mlir
    %past = kiln.state "heard" rows = 2 : tensor<2x8xf32>
    %longer = kiln.concat %past, %x axis = 0 : (tensor<2x8xf32>, tensor<?x8xf32, #t>) -> tensor<?x8xf32, #longer>
    %last = kiln.slice %longer axis = 0 start = 0 at_end : tensor<?x8xf32, #longer> -> tensor<2x8xf32>
    kiln.store %last to "heard" rows = 2 : tensor<2x8xf32>
    ```
    After:
    ```mlir
    %longer = kiln.slide %x after "heard" rows = 2 room = 13 : tensor<?x8xf32, #t> -> tensor<?x8xf32, #longer>
    %last = kiln.slice %longer ...   kiln.store %last to "heard" ...
    ```
    The room of a state is the same in all entries, and does not depend on the target. Does nothing in a module that trains or is
    split among processes.

    Assumes canonical IR.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def HoistInvariants : Pass<"kiln-hoist-invariants", "::mlir::func::FuncOp"> {
  let summary = "Hoist loop-invariant kernel calls";
  let description = [{
    Before: each layer slices the halves of the angles of rotary positions. After: they are sliced once, and are live during the
    loop.
    ```mlir
    %y = kiln.repeat 12 (%x = %init) {
      %half = kiln.call @slice_4(%angles)   %turned = kiln.call @rotary_6(%x, %half) ...
    ```
    ```mlir
    %half = kiln.call @slice_4(%angles)
    %y = kiln.repeat 12 (%x = %init) {
      %turned = kiln.call @rotary_6(%x, %half) ...
    ```
    Assumes formed kernels: before, a value that would be fused with its reader would be stored instead.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def ShareKernels : Pass<"kiln-share-kernels", "::mlir::ModuleOp"> {
  let summary = "Merge equal kernels";
  let description = [{
    Kernel functions that differ only in name, scopes and bounds become one with the union of these. The kernels are then
    numbered in the order of their first calls: embedding_add_0, linear_1_attn ...
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def PlanMemory : Pass<"kiln-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Insert copies that the memory plan needs, and record the plan";
  let description = [{
    Inserts copies (`kiln.concat` of one value, for host code) where a value cannot be in the required memory: an output that
    is an input or a constant or appears twice, a loop's carried value that others still read. Then PlanMemory.h assigns an
    offset to every tensor. Records `kiln.arena_bytes` and `kiln.arena_lower_bound` on each entry.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def VerifyKernels : Pass<"kiln-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Check the result of a stage";
  let description = [{
    Entry functions have only host operations; every dynamic dimension has an extent in its type; with `lowered`, kernels have only
    upstream ops and return results of linalg ops.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"lowered", "lowered", "bool", /*default=*/"false", "kernels are already linalg">];
}

def RecordWork : Pass<"kiln-record-work", "::mlir::ModuleOp"> {
  let summary = "Record the work of each kernel call";
  let description = [{
    Before: kernels of `kiln` ops, and calls of them. After: `kiln.work` on each call, a map from the kernel's symbols to the
    additions and multiplications of its products and to the bytes of its tensors, and `kiln.layer`, the scope of its trace.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def RecordKeys : Pass<"kiln-record-keys", "::mlir::ModuleOp"> {
  let summary = "Record each kernel's key before a target changes it";
  let description = [{
    Before: kernels that are equal for all targets. After: `kiln.structure` and `kiln.shape` on each, the keys of measurements.
    They stay valid when the target's passes rewrite the kernel's functions.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

#endif // KILN_PASSES
