// SPDX-License-Identifier: Apache-2.0
//
// Decides which values of a module are split among tensor-parallel ranks.
//
// 1. Each linear layer is tried as row-parallel (split along K): its input must be split along the last axis, which is
// propagated to what the input is computed from and to everything computed from that, in all entries, since a weight or
// a state is split in only one way. Every path back must end at column-parallel linear layers. Otherwise nothing of it
// is split.
// 2. A table of many rows is split by rows (vocabulary parallel): each rank looks up the rows that it has, and computes
// their logits.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::kiln {

inline RankedTensorType tensorTypeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A value of which each rank has an even share of each section of an axis. With `group` > 1, that many consecutive
/// ranks have the same share.
struct Split {
  unsigned axis = 0;
  SmallVector<int64_t, 3> sections; // static sizes, which add up to the axis
  int64_t group = 1;

  bool isWhole() const { return sections.size() == 1; }
  bool operator==(const Split &) const = default;
};

class ShardSplits {
public:
  /// Splits among this number of ranks. `hasParts`: among this number of parts, which also fixes the order of sums;
  /// then tables used for look-ups are not split, and in training no tables are.
  ShardSplits(ModuleOp module, int64_t ranks, bool hasParts);

  /// Returns the split values, in the order in which they were found.
  const llvm::MapVector<Value, Split> &getSplits() const { return splits; }
  /// Returns the row-parallel linear layers.
  SmallVector<LinearOp> getSummed() const;
  /// Returns the names of the other weights that are split by rows: the tables.
  ArrayRef<StringRef> getTables() const { return tables; }
  /// Returns the parameter ops of a weight, or the ops that read and write a state.
  ArrayRef<Operation *> getUses(StringRef name) const { return uses.find(name)->second; }
  bool isSplit(Value value) const { return splits.contains(value); }
  /// Whether gradients are summed in the order of the parts.
  bool hasOrder() const { return hasParts && isTrained; }

private:
  /// Splits the input of the layer and everything that depends on the split; or nothing.
  void trySplit(LinearOp byInputs);
  /// Records that a value is to be split. Returns false if it cannot be or is already split differently.
  bool add(Value value, const Split &split);
  bool addWhole(Value value, unsigned axis, int64_t group = 1);
  bool addSections(Value joint, unsigned axis);
  /// Records the values that must be split because `known` is.
  bool propagate(Operation *op, Value known, const Split &split);
  bool propagateLinear(LinearOp linear, Value known, const Split &split);
  bool propagateSlice(SliceOp slice, Value known, const Split &split);
  bool propagatePointwise(Operation *op, Value known, const Split &split);
  bool propagateAttention(AttentionOp attention, const Split &split);
  bool addKeys(AttentionOp attention);
  bool propagateState(Operation *op, const Split &split);
  bool propagateParameter(ParameterOp parameter, const Split &split);
  /// Propagates between two values with the same elements in another shape, or with the axis elsewhere.
  bool propagateAxes(Value one, Value other, Value known, const Split &split,
                     function_ref<std::optional<unsigned>(unsigned)> toOther,
                     function_ref<std::optional<unsigned>(unsigned)> toOne);
  /// Whether each linear is split along one side only.
  bool isConsistent(ArrayRef<Value> added) const;
  /// Splits a vocabulary's weight, which has many more rows than columns, in all its uses.
  void trySplitTable(StringRef name);
  bool isTableUse(OpOperand &use) const;

  const int64_t ranks;
  const bool hasParts;
  bool isTrained = false;
  llvm::StringMap<SmallVector<Operation *>> uses;
  llvm::MapVector<Value, Split> splits;
  SmallVector<Value> waiting; // values whose ops are still to be visited
  SmallVector<StringRef> tables;
};

} // namespace mlir::kiln
