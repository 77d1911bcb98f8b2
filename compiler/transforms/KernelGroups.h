// SPDX-License-Identifier: Apache-2.0
//
// Decides which ops of a block become one kernel. Every group has at most one reducing op (its anchor), except for
// contractions of a single row fused with the norm that they read, and sums of few sums, where a target requests these:
//   contraction    linear, matmul, ...   + the pointwise epilogue of its result (activation, residual, scale)
//   attention      attention             + slices, transposes and widening casts of its operands
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
  Operation *anchor; // for a pointwise group: the op of its result
  llvm::SmallSetVector<Operation *, 8> ops;
  /// The results of the kernel: usually one. There are several for an operand of a norm that has other uses, followed
  /// by the norm; and for a value, followed by columns of it for states.
  SmallVector<Value> results;

  bool contains(Operation *op) const { return ops.contains(op); }
  /// Returns the operands that the group does not compute, in order of first use.
  SmallVector<Value> getOperands() const;
  /// Returns the op before which the kernel call is inserted.
  Operation *getPosition() const;
};

/// TargetHooks::mayJoin: whether the kernel of an anchor may compute another op, too. Null: any op that the rules
/// allow.
using MayJoinFunction = std::function<bool(Operation *anchor, Operation *op)>;

/// The target's requests, from TargetHooks.
struct GroupingRules {
  MayJoinFunction mayJoin = nullptr;
  bool writesStates = false;    // columns of a result that are only appended to a state become a result of the kernel
  bool normsSingleRows = false; // contractions of one row recompute the norm that they read
  bool joinsSums = false;       // a sum of few elements is fused into the sum that is its only reader
  bool callsGroups = false;     // a grouped_linear is a call of a kernel for each group, which only works on its rows
  bool runsScans = false;       // a loop over time without large products is one kernel
};

/// Groups the ops of `block`. Ops in several groups are cheap and computed in each.
SmallVector<KernelGroup> groupKernels(Block &block, const GroupingRules &rules = {});

/// Whether the op stays outside of kernels: parameters, views, loops.
bool isHostOp(Operation *op);

} // namespace mlir::kiln
