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
    The sum of the ranks' operands, on each rank. It follows a linear layer of which each rank has a part of K
    (Shoeybi et al. 2019, "g" of section 3).

    ```mlir
    %0 = kiln.all_reduce %x : tensor<7x768xf32>
    %1 = kiln.all_reduce %x over replicas : tensor<7x768xf32>
    ```

    Stages have different programs, in which the same sum may have different operands. So a sum over stages is neither
    erased nor merged with an equal one: each stage takes part in all of them.
  }];
  let arguments = (ins Kiln_FloatTensor:$x, Kiln_Over:$over);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x (`over` `` $over^)? attr-dict `:` type($x)";
}

def Kiln_AllGatherOp : Kiln_Op<"all_gather", [Pure, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "the ranks' tensors along a new first axis";
  let description = [{
    The operands of all ranks, in their order, on each rank. If ranks compute different values from them (`apart`), each
    has a part of the result's gradient, as for `kiln.to_ranks`: the gradient of a rank's operand is the sum over ranks.

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
  let summary = "a rank's part of the sum over all ranks";
  let description = [{
    The sum of the ranks' operands; rank r has index r of the first axis, which the result does not have.

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
  let summary = "the index of the rank";
  let description = [{
    The index of the calling rank, from 0 on.

    ```mlir
    %0 = kiln.rank : tensor<i32>
    ```
  }];
  let arguments = (ins Kiln_Over:$over);
  let results = (outs 0DTensorOf<[I32]>:$result);
  let assemblyFormat = "(`over` `` $over^)? attr-dict `:` type($result)";
}

def Kiln_ToRanksOp : Kiln_Op<"to_ranks", [Pure, SameOperandsAndResultType, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "its operand, from which ranks compute different values";
  let description = [{
    Its operand, which is equal on all ranks, and from which each computes a different value. So each rank has a part of its
    gradient, and the gradient is the sum over all ranks (Shoeybi et al. 2019, "f" of section 3). Folds to its operand
    where nothing is differentiated.

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
    An asynchronous all-reduce: the result is the sum of the ranks' operands after a `kiln.finish`, before which it may only
    be stacked by loops. It is in the memory of its operand, which nothing else reads. `scattered`: a rank has only the part
    with its index along the first axis; other elements of the result are unspecified.

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
  let summary = "waits for asynchronous reductions";
  let description = [{
    Waits for all asynchronous reductions over these ranks. The results are the finished operands.

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
  let summary = "sends values to another stage";
  let description = [{
    Sends values to another stage, which receives them (`kiln.receive`): the next one, or that of `way`. The transfer is
    asynchronous: the values must not change until the next op that waits for stages, or the next iteration of a loop.

    ```mlir
    kiln.send %x : tensor<7x768xf32>
    kiln.send going back %dx : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Variadic<Kiln_Tensor>:$values, Kiln_OnWay:$way);
  let assemblyFormat = "(`going` `` $way^)? $values attr-dict `:` type($values)";
}

def Kiln_ReceiveOp : Kiln_Op<"receive", [Kiln_HostOp, MemoryEffects<[MemWrite]>]> {
  let summary = "receives values of another stage";
  let description = [{
    The values that another stage sends (`kiln.send`), with the same types: the previous stage sends `onward`, the next one
    `back`, and the one at the other end `across`.

    ```mlir
    %x = kiln.receive : tensor<7x768xf32>
    %dx = kiln.receive going back : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_OnWay:$way);
  let results = (outs Variadic<Kiln_Tensor>:$values);
  let assemblyFormat = "(`going` `` $way^)? attr-dict `:` type($values)";
}
