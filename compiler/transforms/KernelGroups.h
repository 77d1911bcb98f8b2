// SPDX-License-Identifier: Apache-2.0
//
// Which ops of a block become one kernel. Every group has at most one op that reduces (its anchor), but for products of
// a single row with the norm that they are of, and sums of few sums, where a target wants that:
//   contraction    linear, matmul, ...   + the pointwise epilogue of its result (activation, residual, scale) and its
//                                          moments
//   attention      attention             + slices and transposes of what it reads, and what widens it
//   row reduction  norms, softmaxes, ... + its epilogue, + the pointwise ops and look-ups that only it uses
//   pointwise      pointwise ops, look-ups and movement that are left, as trees
// An epilogue runs from the anchor's result to the farthest value through which all of its uses go.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"
#include <functional>

namespace mlir::kiln {

struct KernelGroup {
  enum class Kind { Contraction, Attention, RowReduction, Pointwise };

  Kind kind;
  Operation *anchor; // of a pointwise group: the op of its result
  llvm::SmallSetVector<Operation *, 8> ops;
  /// What the kernel returns. Several ones: an operand of a norm that has other uses, then the norm; or what a
  /// contraction leaves, then its moments; or what is computed, then columns of it for states.
  SmallVector<Value> results;

  bool contains(Operation *op) const { return ops.contains(op); }
  /// The operands that the group does not compute, in order of first use.
  SmallVector<Value> getOperands() const;
  /// Where its call goes: before this op.
  Operation *getPosition() const;
};

/// TargetHooks::mayJoin: whether the kernel of an anchor may compute another op, too. Null: any that the rules allow.
using MayJoinFunction = std::function<bool(Operation *anchor, Operation *op)>;

/// What targets want, of TargetHooks.
struct GroupingRules {
  MayJoinFunction mayJoin = nullptr;
  bool writesStates = false;    // columns of a result that are but appended to a state are a result of the kernel, too
  bool normsSingleRows = false; // products of one row compute the norm that they are of
  bool joinsSums = false;       // a sum of few elements is computed by the sum that is its only reader
};

/// Groups the ops of `block`. Ops in several groups are cheap ones, to be computed in each.
SmallVector<KernelGroup> groupKernels(Block &block, const GroupingRules &rules = {});

/// Ops that stay outside of kernels: parameters, views, loops.
bool isHostOp(Operation *op);

} // namespace mlir::kiln
