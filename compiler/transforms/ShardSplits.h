// SPDX-License-Identifier: Apache-2.0
//
// Which values of a module several ranks can have parts of.
//
// 1. Each linear layer is tried as one by inputs: its operand is to be split along the last axis, hence what that is
//    computed from, and what else is computed from that, in all entries, since a weight or a state is split in one way.
//    Back from there each way has to end at linear layers split by outputs. Otherwise nothing of all that is split.
// 2. A table of many rows is split by rows: each rank looks up those that it has, and computes the logits that they
// give.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::kiln {

inline RankedTensorType tensorTypeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A value of which each rank has an even share of each section of an axis; with a group, so many ranks, which follow
/// each other, have the same share.
struct Split {
  unsigned axis = 0;
  SmallVector<int64_t, 3> sections; // fixed extents, which add up to the axis
  int64_t group = 1;

  bool isWhole() const { return sections.size() == 1; }
  bool operator==(const Split &) const = default;
};

class ShardSplits {
public:
  /// Among so many ranks. `hasParts`: so many parts, in whose order sums are; tables that indices look into stay whole,
  /// and where an entry trains all tables.
  ShardSplits(ModuleOp module, int64_t ranks, bool hasParts);

  /// Values by the axis that is split, in the order in which they were found.
  const llvm::MapVector<Value, Split> &getSplits() const { return splits; }
  /// The linear layers by inputs.
  SmallVector<LinearOp> getSummed() const;
  /// Names of weights that are split by rows, beside those.
  ArrayRef<StringRef> getTables() const { return tables; }
  /// What a weight's values are, or what reads and writes a state.
  ArrayRef<Operation *> getUses(StringRef name) const { return uses.find(name)->second; }
  bool isSplit(Value value) const { return splits.contains(value); }
  /// Whether gradients are sums in the order of parts.
  bool hasOrder() const { return hasParts && isTrained; }

private:
  /// Splits what the layer is given, and all that follows from it; or nothing.
  void trySplit(LinearOp byInputs);
  /// Notes that a value is to be split; false if it cannot be, or is in another way.
  bool add(Value value, const Split &split);
  bool addWhole(Value value, unsigned axis, int64_t group = 1);
  bool addSections(Value joint, unsigned axis);
  /// Notes the values beside `known` that are split since that is.
  bool propagate(Operation *op, Value known, const Split &split);
  bool propagateLinear(LinearOp linear, Value known, const Split &split);
  bool propagateSlice(SliceOp slice, Value known, const Split &split);
  bool propagatePointwise(Operation *op, Value known, const Split &split);
  bool propagateAttention(AttentionOp attention, const Split &split);
  bool addKeys(AttentionOp attention);
  bool propagateState(Operation *op, const Split &split);
  bool propagateParameter(ParameterOp parameter, const Split &split);
  /// Between two values of the same elements or of the same axis elsewhere.
  bool propagateAxes(Value one, Value other, Value known, const Split &split,
                     function_ref<std::optional<unsigned>(unsigned)> toOther,
                     function_ref<std::optional<unsigned>(unsigned)> toOne);
  /// That each linear is split along one side.
  bool isConsistent(ArrayRef<Value> added) const;
  /// Splits a weight that is a vocabulary's, of more rows than columns by far, in all its uses.
  void trySplitTable(StringRef name);
  bool isTableUse(OpOperand &use) const;

  const int64_t ranks;
  const bool hasParts;
  bool isTrained = false;
  llvm::StringMap<SmallVector<Operation *>> uses;
  llvm::MapVector<Value, Split> splits;
  SmallVector<Value> waiting; // whose ops are to be looked at
  SmallVector<StringRef> tables;
};

} // namespace mlir::kiln
