// SPDX-License-Identifier: Apache-2.0
//
// The passes that distribute a model among processes. Only compiler/pipeline orders them.
#ifndef KILN_PARALLEL_PASSES
#define KILN_PARALLEL_PASSES

include "mlir/Pass/PassBase.td"

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

def MarkProcesses : Pass<"kiln-mark-processes", "::mlir::ModuleOp"> {
  let summary = "Record how many replicas and pipeline stages call the entries together";
  let description = [{
    Before: a module. After: `kiln.replicas`, and `kiln.stages` with `kiln.roles`, the first stage of each stage role, which
    follow from the stacks of the entries. Numbers of 1 are not recorded. `kiln-shard` records the number of ranks.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"replicas", "replicas", "int64_t", /*default=*/"1", "the number of data-parallel replicas">,
                 Option<"stages", "stages", "int64_t", /*default=*/"1", "the number of pipeline stages">];
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
  let options = [Option<"stages", "stages", "int64_t", /*default=*/"2", "the number of pipeline stages, unless it was recorded">,
                 Option<"trainedOnly", "trained-only", "bool", /*default=*/"false", "cut only the entries that train">];
}

def AverageGradients : Pass<"kiln-average-gradients", "::mlir::ModuleOp"> {
  let summary = "Average gradients over data-parallel replicas";
  let description = [{
    Before: the result of `kiln-differentiate` in a module with `kiln.replicas`.
    ```mlir
    return %loss, %dw : tensor<f32>, tensor<768x768xf32>
    ```
    After, with 4 replicas:
    ```mlir
    %begun:2 = kiln.begin_reduce ...   %sums:2 = kiln.finish %begun#0, %begun#1 over replicas
    %mean = kiln.mul %sums#0, %quarter   %mean_dw = kiln.mul %sums#1, %quarter
    return %mean, %mean_dw
    ```
    An all-reduce begins where the gradient is computed, also in loops over layers. With `shard-states`, each replica gets its
    shard of the gradients of large parameters with optimiser state (ZeRO-1), whose results are marked by `kiln.shard_of`. Each
    replica has its own dropout.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"shardStates", "shard-states", "bool", /*default=*/"false", "shard gradients and optimiser state among replicas">];
}

def SumStageGradients : Pass<"kiln-sum-stage-gradients", "::mlir::ModuleOp"> {
  let summary = "Add the gradients of a parameter that several pipeline stages have";
  let description = [{
    Before: the functions of the stage roles of an entry, with gradients. After: they exchange and add the gradients of parameters
    that several roles have, and the loss, which all stages return.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
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

#endif // KILN_PARALLEL_PASSES
