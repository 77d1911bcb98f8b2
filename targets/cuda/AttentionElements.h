// SPDX-License-Identifier: Apache-2.0
//
// Elements of an attention at a row and a key, or at a row and a channel: what the kernel's own ops make of a score, of
// a weight and of an output. How they are added up is others' business.
#pragma once

#include "targets/cuda/AttentionMatch.h"

namespace kiln::cuda {

/// An output that is not divided yet: of some keys, or of all.
struct AttentionPart {
  tile::Value maximum, sum, output; // of the scores; of their weights to that maximum; of the values by them
};

class AttentionElements {
public:
  /// `first`, `last`: the steps.
  AttentionElements(tile::Builder &b, Reader &reader, const StepContext &first, const StepContext &last,
                    const Attention &attention)
      : b(b), reader(reader), first(first), last(last), attention(attention) {}

  tile::Value batchCount() { return reader.extent(extentOf(attention.batch, b.getContext())); }
  tile::Value rowCount() { return reader.extent(extentOf(attention.rows, b.getContext())); }
  tile::Value keyCount() { return reader.extent(attention.keys); }

  /// Coordinates of the scores: the batch of that number, then a row of it. The key is behind them.
  tile::Values batch(tile::Value number);
  tile::Values row(const tile::Values &batch, tile::Value number);

  /// Loops of the scores' op and of the outputs' at the coordinates; the depth and the channel as given.
  tile::Values scoreLoops(const tile::Values &at, tile::Value depth);
  tile::Values outputLoops(const tile::Values &at, tile::Value channel);

  /// A query's element at a row; null after a diagnostic.
  tile::Value query(const tile::Values &row, tile::Value depth);
  /// How many keys, from the first on, the row's limits leave; 0 or fewer: none.
  tile::Value keysWithin(const tile::Values &row);
  /// How many of them the row needs. All, if none of them counts: then all have the same weight.
  tile::Value keysNeeded(const tile::Values &row);
  /// The score that a sum of products becomes.
  tile::Value score(const tile::Values &row, tile::Value key, tile::Value sum);
  /// The larger one.
  tile::Value maximum(tile::Value x, tile::Value y);
  /// What to take scores' weights to, if that is their maximum: -infinity is none, though it has the weight 0.
  tile::Value reference(tile::Value maximum);
  /// e^(score - reference), to the kernel's base.
  tile::Value weight(tile::Value score, tile::Value reference);
  /// Makes the row's results of all its keys' output at the channel, and stores them.
  void finish(const tile::Values &row, tile::Value channel, const AttentionPart &part);

  tile::Value number(float value);
  /// Whether a diagnostic has been emitted.
  bool isBroken() const { return broken; }

private:
  tile::Values split(llvm::ArrayRef<AttentionAxis> axes, tile::Value number, tile::Values at);
  tile::Value orZero(tile::Value value);

  tile::Builder &b;
  Reader &reader;
  const StepContext &first, &last;
  const Attention &attention;
  bool broken = false;
};

} // namespace kiln::cuda
