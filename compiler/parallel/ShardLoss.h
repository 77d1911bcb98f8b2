// SPDX-License-Identifier: Apache-2.0
//
// Losses on logits whose columns are split among ranks (Shoeybi et al. 2019, section 3: "parallel cross entropy"). For
// each row the ranks exchange their largest logits, their sums of e^x, and the logit of the target, which one of them
// has. Logits are never gathered; neither are their gradients, which differentiation derives from these ops.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

class GradientBuilder;

/// A rank's rows of a vocabulary. All ranks have equally many; if the ranks do not divide the vocabulary, the last
/// rank's rows start within those of the previous rank, and it skips the rows that overlap.
struct VocabularyShare {
  VocabularyShare(OpBuilder &builder, Location loc, int64_t vocabulary, int64_t ranks);

  /// Returns the indices relative to the rank's first row.
  Value indicesOf(OpBuilder &builder, Location loc, Value indices) const;
  /// Whether each of the given relative rows belongs to this rank only; null: all do.
  Value areOwn(OpBuilder &builder, Location loc, Value rows) const;

  static int64_t rowsOf(int64_t vocabulary, int64_t ranks) { return llvm::divideCeil(vocabulary, ranks); }

  Value first, skipped; // scalars; skipped is null where the ranks divide the vocabulary
};

class ShardLoss {
public:
  /// Whether the only readers of the logits are the parts of kiln::cross_entropy: the log-likelihood of a target, and
  /// the mean or sum of all log-likelihoods of a row. Pointwise ops may come before them.
  bool find(LinearOp logits);
  /// Rewrites what was found to operate on each rank's columns of the linear's result.
  void split(int64_t ranks);

private:
  /// where(target == positions, likely, 0), which is then summed.
  struct Pick {
    SumOp sum;
    WhereOp where;
    EqualOp equal;
    PositionsOp classes;
    Value target; // [..., 1]
  };
  /// Reductions of a log_softmax, each to one number per row.
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
  /// The sum along the last axis and over all ranks.
  Value addRanks(GradientBuilder &b, Value x) const;
  void splitClasses(PositionsOp classes);
  unsigned axis() const { return cast<RankedTensorType>(columns.front().getType()).getRank() - 1; }
  bool isScalarConstant(Value value) const;

  int64_t vocabulary = 0;
  SmallVector<Value> columns; // the logits and the results of pointwise ops on them
  SmallVector<PositionsOp> positions;
  SmallVector<Likelihoods> likelihoods;
};

} // namespace mlir::kiln
