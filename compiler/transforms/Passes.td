// SPDX-License-Identifier: Apache-2.0
//
// The compiler's passes. Only Pipeline.cpp orders them.
#ifndef KILN_PASSES
#define KILN_PASSES

include "mlir/Pass/PassBase.td"

def MergeProjections : Pass<"kiln-merge-projections", "::mlir::ModuleOp"> {
  let summary = "Join the projections of one value that an attention reads";
  let description = [{
    Before: three linears of the same value, each read by one attention only.
    ```mlir
    %q = kiln.linear %x, %wq ...   %k = kiln.linear %x, %wk ...   %v = kiln.linear %x, %wv ...
    %y = kiln.attention %q, %k, %v ...
    ```
    After: one linear with a parameter of three sources; the attention reads slices of it.

    Between them may be a split into heads and what follows it, such as norms of heads and rotary positions. Heads are then split
    from the joined result; what is done alike to queries and keys is done to both at once:
    ```mlir
    %qkv = kiln.linear ...   %heads = kiln.reshape %qkv ...   %both = kiln.slice %heads ...
    %turned = ... rotary positions of %both ...   %q = kiln.slice %turned ...   %k = kiln.slice %turned ...
    ```

    Assumes weights and biases that nothing else uses, in any entry, unless it joins the same; all of the linears have a bias or
    none has. Runs behind differentiation: a weight that a backward pass reads, too, stays alone.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def RecognizeAttention : Pass<"kiln-recognize-attention", "::mlir::func::FuncOp"> {
  let summary = "Turn attention that is written out into kiln.attention";
  let description = [{
    Before: matmul(softmax(scale * matmul(q, transpose(k)) + mask), v), with the heads split by reshape and transpose, or as
    batch axes of their own. After: kiln.attention of what the heads were split from. A constant mask that is 0 on and below the
    diagonal and at most -1e9 above becomes `causal`.

    Assumes canonical IR. The intermediate values must have no other use. Does nothing in a module of which it is known
    that all attention was recognised before its entries were cut.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def Shard : Pass<"kiln-shard", "::mlir::ModuleOp"> {
  let summary = "Split a model among ranks";
  let description = [{
    Tensor parallelism (Shoeybi et al. 2019, "Megatron-LM", section 3). Before: what one process computes. After: what each of
    several ranks computes; the first layers are split by outputs, attention by heads, the last layer by inputs, whose sums are
    added over the ranks.
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
    Weights and states have the shape of a rank's part. What cannot be split evenly each rank does alone. Parts of f16 and bf16 are
    added up in f32 and the sum is rounded, unless `sums-short` says that communicators have sums of these.

    With `parts`, of which the ranks have the same number each, what so many ranks could split is split, and one rank has sums over
    itself, of which `kiln-sum-parts` makes those of so many parts.

    Assumes canonical IR in which attention was recognised, and entries for single sequences.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"ranks", "ranks", "int64_t", /*default=*/"2", "how many processes call entries together">,
                 Option<"parts", "parts", "int64_t", /*default=*/"0", "of how many parts sums are; 0: each rank has one">,
                 Option<"sumsShort", "sums-short", "bool", /*default=*/"false", "add up f16 and bf16 as they are">];
}

def SumParts : Pass<"kiln-sum-parts", "::mlir::ModuleOp"> {
  let summary = "Make sums over ranks those of a number of parts";
  let description = [{
    Before: what `kiln-shard` with `parts` made, and its gradients.
    ```mlir
    module attributes {kiln.ranks = 2, kiln.sum_parts = 4, kiln.shards = {fc2.weight = #kiln.shard<1, [3072]>, ...}}
    %p = kiln.linear %a, %w2 weight_order = out_in : (tensor<7x1536xf32>, tensor<768x1536xf32>) -> tensor<7x768xf32>
    %s = kiln.all_reduce %p
    ```
    After:
    ```mlir
    %p = kiln.matmul %parts, %weights transpose_b : (tensor<2x7x768xf32>, tensor<2x768x768xf32>) -> tensor<2x7x768xf32>
    %own = kiln.add %p0, %p1   %all = kiln.all_gather %own   %s = kiln.add %all0, %all1
    ```
    The parts are added as a binary tree, whatever the number of ranks, one of them, too: where kernels are ordered the results are
    the same bits. A sum may be one of several layers' results, as gradients of what these read are. Other sums over ranks are an
    error.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def ShardRows : Pass<"kiln-shard-rows", "::mlir::ModuleOp"> {
  let summary = "Divide the rows between split layers among ranks";
  let description = [{
    Sequence parallelism (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", section 4.2.2).
    Before: what `kiln-shard` made, in which each rank has all rows of norms and residuals.
    ```mlir
    %s = kiln.all_reduce %p : tensor<8x768xf32>   %y = kiln.add %x, %s   %n = kiln.rms_norm %y, %w   %all = kiln.to_ranks %n
    ```
    After, with 2 ranks:
    ```mlir
    %s = kiln.reduce_scatter %p2 : tensor<2x4x768xf32> -> tensor<4x768xf32>   %y = kiln.add %x, %s   %n = kiln.rms_norm %y, %w2
    %all = kiln.all_gather %n apart : tensor<4x768xf32> -> tensor<2x4x768xf32>
    ```
    Rows are an axis but the last one, with a fixed extent that the ranks divide. Entries without such an axis stay as they are,
    with a remark; if there is no other, that is an error. Dropout drops other elements than in one process.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def CutStages : Pass<"kiln-cut-stages", "::mlir::ModuleOp"> {
  let summary = "Cut the stack of each entry in stages";
  let description = [{
    Pipeline parallelism (Huang et al. 2019, "GPipe"). Before: entries with a stack each.
    ```mlir
    func.func @forward(%tokens) -> tensor<7x63xf32> attributes {kiln.entry} {
      %x = kiln.embedding ...   %y = kiln.repeat 12 (%h = %x) {...}   %logits = kiln.linear %y ...
    ```
    After, with 4 stages: a function for each role that a stage may have, of which it computes what it sends or returns.
    ```mlir
    func.func @forward_first(%tokens) attributes {kiln.entry} {
      %x = kiln.embedding ...   %y = kiln.repeat 3 (%h = %x) {...}   kiln.send %y
    func.func @forward_last(%tokens) -> tensor<7x63xf32> attributes {kiln.entry} {
      %x = kiln.receive   %y = kiln.repeat 3 (%h = %x) {...}   %logits = kiln.linear %y ...
    func.func @forward_middle(%tokens) attributes {kiln.entry} {
      %x = kiln.receive   %y = kiln.repeat 3 (%h = %x) {...}   kiln.send %y
    ```
    Parameters and states of the stack have a copy for each layer of a stage. What layers read beside what they hand on, such as
    angles of positions, each stage computes for itself. Of layers that the stages do not divide those before the last one have one
    more each: of 9 the third has 3. It has a role of its own then, `middle2`.

    An entry has one stack, of a layer for each stage at least, none in its layers, and no states but those of the layers; nothing
    reads what all layers give. Otherwise that is an error.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"stages", "stages", "int64_t", /*default=*/"2", "how many processes have some of the layers each">];
}

def LayOutWeights : Pass<"kiln-lay-out-weights", "::mlir::ModuleOp"> {
  let summary = "Choose the stored layout of the weights that contractions read";
  let description = [{
    Before: `kiln.parameter ... : tensor<3072x768xf32>` read by a linear. After: `tensor<3072x768xf32, #kiln.tiled<0, 48>>`: the
    dimension of the outputs is split by the tile that the target wants. All users see the layout, such as an embedding whose
    table is the weight of the logits. Weights that something else than linear, matmul and embedding reads stay dense, and
    so do those that are multiplied both ways, x W and y W^T, unless they are stored in fewer bits. Those that rows of int8 are
    multiplied by get the interleave that the target's instructions want.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"tile", "tile", "int64_t", /*default=*/"0", "tile of every weight, without a target to ask">,
                 Option<"word", "word", "int64_t", /*default=*/"1", "steps of the depth that lie together for rows of int8">];
}

def DeriveWeights : Pass<"kiln-derive-weights", "::mlir::ModuleOp"> {
  let summary = "Compute what follows from weights when they are bound";
  let description = [{
    Before: `kiln.div %weight, %root` with `%root` the root of `kiln.add %variance, %epsilon`, all of weights. After: a
    `kiln.parameter` that is `derived`, and a function with `kiln.derives` that computes the quotient and assigns it, in loops over
    layers where the weights are in such. Only what costs something (a division, a function, a sum, a product of matrices), of
    weights that are stored as they are and of constants. Nothing in libraries that write weights or are cut for several processes.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect", "::mlir::func::FuncDialect"];
}

def FormKernels : Pass<"kiln-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group ops into kernel functions";
  let description = [{
    Before: entry functions of kiln ops. After: entry functions of kiln.call, parameters, constants, views and loops; each call's
    kernel function still holds kiln ops, over its own symbols, with leading axes collapsed where all ops work on rows.

    How ops are grouped stands in KernelGroups.h. With `norm-moments`, a norm of what a linear layer with a weight in tiles leaves takes its
    mean and variance from the moments of the panels, which become results of the layer's kernel. With `writes-states`, columns of what
    a kernel leaves that are appended to a state are a result of their own, so that they can be written where the state is. With
    `norms-single-rows` products of one row have the norm that they are of in their kernel, all of them one. With `joins-sums` a
    small sum is computed by the sum that alone reads it.
  }];
  let options = [Option<"normMoments", "norm-moments", "bool", /*default=*/"false", "moments of norms from contractions">,
                 Option<"writesStates", "writes-states", "bool", /*default=*/"false", "results that are rows of states">,
                 Option<"normsSingleRows", "norms-single-rows", "bool", /*default=*/"false", "products of a row that compute its norm">,
                 Option<"joinsSums", "joins-sums", "bool", /*default=*/"false", "small sums of sums that are one kernel">];
  let dependentDialects = ["::mlir::kiln::KilnDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}

def LowerKernels : Pass<"kiln-lower-kernels", "::mlir::func::FuncOp"> {
  let summary = "Decompose the ops of kernel functions into linalg on tensors";
  let description = [{
    Before: a kernel function of kiln ops. After: linalg.generic over tensor.empty, with the arguments that the result may share
    memory with as `kiln.inplace`. Other functions stay as they are.
  }];
  let options = [Option<"ordered", "ordered", "bool", "false",
                        "Round what an op gives to a short float of the model where it is read in the kernel, too">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AllowTf32 : Pass<"kiln-allow-tf32", "::mlir::func::FuncOp"> {
  let summary = "Let kernels round factors of f32 to tf32";
  let description = [{
    Before: kernel functions of linalg. After: `kiln.tf32` on those that sum products of f32, but for strict ones: a target with tensor
    cores may round what it multiplies to ten bits behind the point. Sums stay f32.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def KeepOrder : Pass<"kiln-keep-order", "::mlir::func::FuncOp"> {
  let summary = "Have kernels compute each row alike, however many there are";
  let description = [{
    Before: kernel functions of linalg. After: `kiln.ordered` on those that compute with floats: what a target makes of them gives a row
    of their results to the bit whatever the number of rows, the form of the kernel and its schedule.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def SlideStates : Pass<"kiln-slide-states", "::mlir::ModuleOp"> {
  let summary = "Keep the last rows of streams where they are";
  let description = [{
    Before: windows over streams, whose last rows each call copies to a state.
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
    The room of a state is the same in all entries, and does not depend on the target. Does nothing in a module that trains or that
    several processes call.

    Assumes canonical IR.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def HoistInvariants : Pass<"kiln-hoist-invariants", "::mlir::func::FuncOp"> {
  let summary = "Call kernels before a loop that compute the same in each iteration";
  let description = [{
    Before: each layer takes its halves of the angles of rotary positions. After: they are taken once, and live as long as the
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
    Assumes formed kernels: earlier a value that is computed where it is read would become one that is stored.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def ShareKernels : Pass<"kiln-share-kernels", "::mlir::ModuleOp"> {
  let summary = "Make equal kernels one";
  let description = [{
    Kernel functions that differ in name, scopes and bounds only become one with the union of these. The kernels are then
    numbered in the order of their first calls: embedding_add_0, linear_1_attn ...
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def PlanMemory : Pass<"kiln-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Make sure that every tensor of an entry can have a place, and record the plan";
  let description = [{
    Inserts copies (`kiln.concat` of one value, for the host function) where a value cannot be where it has to be: an
    output that is an input or a constant or appears twice, a loop's carried value that others still read. After that
    PlanMemory.h finds a place for every tensor. Records `kiln.arena_bytes` and `kiln.arena_lower_bound` on each entry.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def VerifyKernels : Pass<"kiln-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Check what a stage leaves";
  let description = [{
    Entry functions hold only what the host function can do; every run-time extent is stated; with `lowered`, kernels hold upstream
    ops only and return what linalg ops produce.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"lowered", "lowered", "bool", /*default=*/"false", "kernels are linalg by now">];
}

def RecordWork : Pass<"kiln-record-work", "::mlir::ModuleOp"> {
  let summary = "Write beside each call of a kernel what it does";
  let description = [{
    Before: kernels of `kiln` ops, and calls of them. After: `kiln.work` on each call, a map from the kernel's symbols to the
    additions and multiplications of its products and to the bytes of its tensors, and `kiln.layer`, where it was traced.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def RecordKeys : Pass<"kiln-record-keys", "::mlir::ModuleOp"> {
  let summary = "Write each kernel's key down before a target changes it";
  let description = [{
    Before: kernels as every target gets them. After: `kiln.structure` and `kiln.shape` on each, which measurements are found by.
    A target's passes may then compute its functions in another way, and its records still count.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

#endif // KILN_PASSES
