// SPDX-License-Identifier: Apache-2.0
//
// Collective and point-to-point ops of processes that share a call of an entry: tensor-parallel ranks, data-parallel
// replicas, or pipeline stages. All processes run the same code, so these ops have the same order everywhere; an unused
// Pure op is erased on all of them.
include "KilnDialect.td"

def Kiln_Over : DefaultValuedAttr<Kiln_GroupAttr, "::mlir::kiln::Group::Ranks">;

def Kiln_AllReduceOp : Kiln_Op<"all_reduce", [AlwaysSpeculatable, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                                              SameOperandsAndResultType, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "the sum over all ranks";
  let description = [{
    The sum of the ranks' operands, which each of them gets: what stands behind a linear layer of which each rank has a
    part of the depth (Shoeybi et al. 2019, "g" of section 3).

    ```mlir
    %0 = kiln.all_reduce %x : tensor<7x768xf32>
    %1 = kiln.all_reduce %x over replicas : tensor<7x768xf32>
    ```

    Stages have programs of their own, in which the same sum may have different operands. So a sum over stages is neither
    dropped nor joined with an equal one: each stage takes part in all of them.
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_Over:$over);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x (`over` `` $over^)? attr-dict `:` type($x)";
}

def Kiln_AllGatherOp : Kiln_Op<"all_gather", [Pure, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "the ranks' tensors along a new first axis";
  let description = [{
    The operands of all ranks, in their order, which each of them gets. If ranks compute different things of them (`apart`), each
    has a part of the result's gradient, as of `kiln.to_ranks`: a rank's own gradient is the sum of theirs.

    ```mlir
    %0 = kiln.all_gather %x : tensor<7x192xf32> -> tensor<4x7x192xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x, Kiln_Over:$over, UnitAttr:$apart);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$x (`over` `` $over^)? (`apart` $apart^)? attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Kiln_ReduceScatterOp : Kiln_Op<"reduce_scatter", [Pure, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "of the sum over all ranks each gets its part";
  let description = [{
    The sum of the ranks' operands along all but the first axis: rank r gets what has index r there.

    ```mlir
    %0 = kiln.reduce_scatter %x : tensor<4x7x192xf32> -> tensor<7x192xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_Over:$over);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x (`over` `` $over^)? attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Kiln_RankOp : Kiln_Op<"rank", [Pure, Kiln_HostOp]> {
  let summary = "the number of the rank";
  let description = [{
    The number of the rank that computes, from 0 on.

    ```mlir
    %0 = kiln.rank : tensor<i32>
    ```
  }];
  let arguments = (ins Kiln_Over:$over);
  let results = (outs 0DTensorOf<[I32]>:$result);
  let assemblyFormat = "(`over` `` $over^)? attr-dict `:` type($result)";
}

def Kiln_ToRanksOp : Kiln_Op<"to_ranks", [Pure, SameOperandsAndResultType, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "its operand, of which ranks compute different things";
  let description = [{
    Its operand, which all ranks have alike, and of which each computes something else. So each has a part of its gradient, and
    the sum over all ranks is all of it (Shoeybi et al. 2019, "f" of section 3). Goes away where nothing is differentiated.

    ```mlir
    %0 = kiln.to_ranks %x : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasFolder = 1;
}

def Kiln_BeginReduceOp
    : Kiln_Op<"begin_reduce", [SameOperandsAndResultType, Kiln_HostOp, MemoryEffects<[MemWrite]>]> {
  let summary = "begins a sum over all ranks, in the memory of its operand";
  let description = [{
    What becomes the sum of the ranks' operands while other ops go on: the result may be read behind a `kiln.finish` of it
    alone, or stacked by loops until then. It is where its operand lies, which nothing else reads. `scattered`, each rank gets
    what has its number along the first axis alone: elsewhere the result may be anything.

    ```mlir
    %0 = kiln.begin_reduce %dw over replicas : tensor<3072x768xf32>
    %1 = kiln.begin_reduce %db over replicas scattered : tensor<4x192xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_Over:$over, UnitAttr:$scattered);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x (`over` `` $over^)? (`scattered` $scattered^)? attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Kiln_FinishOp : Kiln_Op<"finish", [Pure, Kiln_HostOp, AllTypesMatch<["begun", "finished"]>]> {
  let summary = "waits for what was begun";
  let description = [{
    Waits for all that was begun over these ranks. Results are the operands, which may be read now.

    ```mlir
    %0:2 = kiln.finish %dw, %db over replicas : tensor<12x3072x768xf32>, tensor<12x768xf32>
    ```
  }];
  let arguments = (ins Variadic<Kiln_FloatTensor>:$begun, Kiln_Over:$over);
  let results = (outs Variadic<Kiln_FloatTensor>:$finished);
  let assemblyFormat = "$begun (`over` `` $over^)? attr-dict `:` type($begun)";
}

def Kiln_OnWay : DefaultValuedAttr<Kiln_WayAttr, "::mlir::kiln::Way::Onward">;

def Kiln_SendOp : Kiln_Op<"send", [Kiln_HostOp, MemoryEffects<[MemWrite]>]> {
  let summary = "another stage gets values";
  let description = [{
    Gives values to another stage, which receives them (`kiln.receive`): the next one, or that on the way. They are on their way
    when the op is done, and stay as they are until the next op that waits for stages, or the next iteration of a loop.

    ```mlir
    kiln.send %x : tensor<7x768xf32>
    kiln.send going back %dx : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$values, Kiln_OnWay:$way);
  let assemblyFormat = "(`going` `` $way^)? $values attr-dict `:` type($values)";
}

def Kiln_ReceiveOp : Kiln_Op<"receive", [Kiln_HostOp, MemoryEffects<[MemWrite]>]> {
  let summary = "values of another stage";
  let description = [{
    The values that a stage sends (`kiln.send`), of the same types: what the stage before sends onward, the next one back, or the
    one at the other end across.

    ```mlir
    %x = kiln.receive : tensor<7x768xf32>
    %dx = kiln.receive going back : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_OnWay:$way);
  let results = (outs Variadic<Kiln_Tensor>:$values);
  let assemblyFormat = "(`going` `` $way^)? attr-dict `:` type($values)";
}
