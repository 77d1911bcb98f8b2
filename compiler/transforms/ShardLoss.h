// SPDX-License-Identifier: Apache-2.0
//
// Losses of logits of which each rank has its columns (Shoeybi et al. 2019, section 3: "parallel cross entropy").
// Of each row the ranks exchange their largest logits, their sums of e^x, and the logit of the target, which one of
// them has. Logits stay where they are; so do their gradients, which follow from what stands here.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

class GradientBuilder;

/// A rank's rows of a vocabulary. All have as many, so the last rank's begin within those of the rank before, if the
/// ranks do not divide it: it skips what that one has.
struct VocabularyShare {
  VocabularyShare(OpBuilder &builder, Location loc, int64_t vocabulary, int64_t ranks);

  /// Counted from the first row that the rank has.
  Value indicesOf(OpBuilder &builder, Location loc, Value indices) const;
  /// Of rows that the rank has, counted so, those that are its own; null: all.
  Value areOwn(OpBuilder &builder, Location loc, Value rows) const;

  static int64_t rowsOf(int64_t vocabulary, int64_t ranks) { return llvm::divideCeil(vocabulary, ranks); }

  Value first, skipped; // numbers; skipped is null where the ranks divide the vocabulary
};

class ShardLoss {
public:
  /// Whether all that reads the logits is what kiln::cross_entropy is made of: the likelihood of a target, and the
  /// mean or the sum of all likelihoods of a row. They may go through ops on elements before.
  bool find(LinearOp logits);
  /// What was found becomes what each rank does with its columns of the linear's result.
  void split(int64_t ranks);

private:
  /// where(target == positions, likely, 0), which is then added up.
  struct Pick {
    SumOp sum;
    WhereOp where;
    EqualOp equal;
    PositionsOp classes;
    Value target; // [..., 1]
  };
  /// Reductions of a log_softmax, each to a number a row.
  struct Likelihoods {
    LogSoftmaxOp all;
    SmallVector<Pick> picks;
    SmallVector<Operation *> means; // or sums
  };

  bool addReaders(Value logits);
  bool addLikelihoods(LogSoftmaxOp likely);
  std::optional<Pick> pickOf(WhereOp where) const;
  bool areRead(PositionsOp classes) const;
  void splitLikelihoods(Likelihoods &likely, int64_t ranks);
  Value splitPick(OpBuilder &builder, Pick &pick, const VocabularyShare &share, Value centred, Value logSum);
  /// The sum along the last axis, of all ranks.
  Value addRanks(GradientBuilder &b, Value x) const;
  void splitClasses(PositionsOp classes);
  unsigned axis() const { return cast<RankedTensorType>(columns.front().getType()).getRank() - 1; }
  bool isScalarConstant(Value value) const;

  int64_t vocabulary = 0;
  SmallVector<Value> columns; // the logits, and what ops on elements made of them
  SmallVector<PositionsOp> positions;
  SmallVector<Likelihoods> likelihoods;
};

} // namespace mlir::kiln
