// SPDX-License-Identifier: Apache-2.0
//
// The passes of this folder. Only compiler/pipeline/Pipeline.cpp orders them.
#ifndef KILN_PASSES
#define KILN_PASSES

include "mlir/Pass/PassBase.td"

def JoinWeights : Pass<"kiln-join-weights", "::mlir::ModuleOp"> {
  let summary = "Join the weights of the groups of grouped_linear";
  let description = [{
    Before: the weights of groups are separate parameters, as those of experts are.
    ```mlir
    %0 = kiln.parameter {sources = ["experts.0.weight"]} : tensor<5x3xf32>
    %1 = kiln.parameter {sources = ["experts.1.weight"]} : tensor<5x3xf32>
    %w = kiln.concat %0, %1 axis = 0 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
    %y = kiln.grouped_linear %x, %w, %ends weight_order = out_in : ...
    ```
    After: one parameter of several sources, which is packed in this order.
    ```mlir
    %w = kiln.parameter {sources = ["experts.0.weight", "experts.1.weight"], source_extents = array<i64: 5, 5>} : tensor<10x3xf32>
    ```
    Weights that something else reads, in any entry, stay apart. Does nothing in modules with entries that train, which write each
    weight.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def StoreWeights : Pass<"kiln-store-weights", "::mlir::ModuleOp"> {
  let summary = "Set the storage formats of quantised weights";
  let description = [{
    Before: parameters without a format, and `kiln.stated_storage` on the module, the formats that the spec states.
    ```mlir
    module attributes {kiln.stated_storage = {a = "f16"}} {
      %a = kiln.parameter {sources = ["a"]} : tensor<64x48xf32>   %b = kiln.parameter {sources = ["b"]} : tensor<64x48xf32>
    ```
    After, with `weights=int8`:
    ```mlir
    %a = kiln.parameter {sources = ["a"], storage = #kiln.storage<f16>} : tensor<64x48xf32>
    %b = kiln.parameter {sources = ["b"], storage = #kiln.storage<i8>} : tensor<64x48xf32>
    ```
    A weight has the format of the last pattern that matches its name, else the spec's, else the preset. The preset skips weights
    that do not support it. A spec or a pattern that names such a weight, or a pattern that matches no weight, is an error.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
  let options = [Option<"weights", "weights", "std::string", /*default=*/"\"f32\"",
                        "the formats: \"int8\" or \"int8 except lm_head.*=f16\"">];
}

def QuantizeRows : Pass<"kiln-quantize-rows", "::mlir::ModuleOp"> {
  let summary = "Quantise the rows that linear layers multiply by integer weights";
  let description = [{
    Before: `kiln.linear %x, %w ...` with a weight that is stored as int8 or int4. After:
    ```mlir
    %scales = kiln.row_scales %x   %q = kiln.quantize_rows %x, %scales   %y = kiln.linear %q, %w scales %scales ...
    ```
    Once CSE has merged equal ops, one quantisation serves all products of a value. If rows are sharded, each rank quantises its
    own. A module without such layers is an error.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def BatchEntries : Pass<"kiln-batch-entries", "::mlir::ModuleOp"> {
  let summary = "Add the function of each batched entry that processes several sequences";
  let description = [{
    Before: an entry with `kiln.batched`, of a module with `kiln.batch_symbols`, the positions of the numbers of sequences, of the
    rows of all of them, and of the rows of one.
    ```mlir
    func.func @prefill(%tokens: tensor<?xi32, #tokens>) attributes {kiln.batched, kiln.entry} { embedding linear | append attention | linear }
    ```
    After: also a function for several sequences.
    ```mlir
    func.func @prefill_batch(%tokens: tensor<?xi32, #rows>) attributes {kiln.batch, kiln.entry} {
      embedding linear | kiln.each_sequence { append attention } | linear }
    ```
    Assumes that attention was recognised.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect", "::mlir::func::FuncDialect"];
}

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

    Assumes canonical IR. The intermediate values must have no other use, so attention is recognised before entries are cut or
    derived from others: their functions have fewer users of values, but must compute the same results to the bit.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
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

def ExpandSorts : Pass<"kiln-expand-sorts", "::mlir::ModuleOp"> {
  let summary = "Rewrite sorts and sums by index as ops of kernels";
  let description = [{
    Before: `kiln.argsort` and `kiln.index_add`, which are functions of the run time on CPUs.
    ```mlir
    %y = kiln.index_add %x, %indices, %rows : (tensor<9x16xf32>, tensor<7xi32>, tensor<7x16xf32>) -> tensor<9x16xf32>
    ```
    After: comparisons of all pairs of elements, or of all rows of the table with all indices, and sums. The first positions of
    a long axis are found one after another.
    ```mlir
    %here = kiln.equal %numbers, %indices   %chosen = kiln.where %here, %rows, %zero   %sums = kiln.sum %chosen axis = 1
    %y = kiln.add %x, %sums : (tensor<9x16xf32>, tensor<9x16xf32>) -> tensor<9x16xf32>
    ```
    Runs for targets without `sortsOnHost`.
  }];
  let dependentDialects = ["::mlir::kiln::KilnDialect"];
}

def FormKernels : Pass<"kiln-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group ops into kernel functions";
  let description = [{
    Before: entry functions of kiln ops. After: entry functions of kiln.call, parameters, constants, views and loops; each call's
    kernel function still holds kiln ops, over its own symbols, with leading axes collapsed where all ops work on rows.

    KernelGroups.h describes the grouping. With `writes-states`, columns of a kernel's result that are appended to a
    state are a separate result, so that they can be written to the state in place. With `norms-single-rows`, all GEMVs of a
    normalised row form one kernel with the norm. With `joins-sums`, a small sum that only another sum reads is fused with it.
    With `calls-groups`, a grouped_linear is a call for each group of the kernel of a linear. With `runs-scans`, a `kiln.scan`
    whose body has no large products is one kernel (ScanKernel.h).
  }];
  let options = [Option<"writesStates", "writes-states", "bool", /*default=*/"false", "separate results for rows of states">,
                 Option<"normsSingleRows", "norms-single-rows", "bool", /*default=*/"false", "fuse a norm of one row with its products">,
                 Option<"joinsSums", "joins-sums", "bool", /*default=*/"false", "fuse small sums with the sums that read them">,
                 Option<"callsGroups", "calls-groups", "bool", /*default=*/"false", "call the kernel of a grouped_linear for each group">,
                 Option<"runsScans", "runs-scans", "bool", /*default=*/"false", "one kernel for a loop over time">];
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
