// SPDX-License-Identifier: Apache-2.0
//
// What ranks, the processes that share one call of an entry, do together. All of them run the same code, so these ops
// come in one order everywhere; a Pure one that nothing reads goes away on every rank.
include "KilnDialect.td"

def Kiln_AllReduceOp : Kiln_Op<"all_reduce", [Pure, SameOperandsAndResultType, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "the sum over all ranks";
  let description = [{
    The sum of the ranks' operands, which each of them gets: what stands behind a linear layer of which each rank has a
    part of the depth (Shoeybi et al. 2019, "g" of section 3).

    ```mlir
    %0 = kiln.all_reduce %x : tensor<7x768xf32>
    ```
  }];
  let arguments = (ins Kiln_FloatTensor:$x);
  let results = (outs Kiln_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Kiln_AllGatherOp : Kiln_Op<"all_gather", [Pure, Kiln_HostOp, Kiln_Differentiable]> {
  let summary = "the ranks' tensors along a new first axis";
  let description = [{
    The operands of all ranks, in their order, which each of them gets.

    ```mlir
    %0 = kiln.all_gather %x : tensor<7x192xf32> -> tensor<4x7x192xf32>
    ```
  }];
  let arguments = (ins Kiln_Tensor:$x);
  let results = (outs Kiln_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
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
  let results = (outs 0DTensorOf<[I32]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
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
