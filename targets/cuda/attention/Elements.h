// SPDX-License-Identifier: Apache-2.0
//
// Computes elements of an attention at a row and a key, or at a row and a channel, by the kernel's own ops: scores,
// attention weights and outputs. Other files accumulate them.
#pragma once

#include "targets/cuda/attention/Match.h"

namespace kiln::cuda {

/// An unnormalised attention output over some or all keys: the state of an online softmax.
struct AttentionPart {
  tile::Value maximum, sum, output; // maximum of the scores, sum of the weights relative to it, weighted sum of values
};

class AttentionElements {
public:
  /// `first`, `last`: the first and the last kernel stage of the attention.
  AttentionElements(tile::Builder &b, ElementEmitter &emitter, const StageContext &first, const StageContext &last,
                    const Attention &attention)
      : b(b), emitter(emitter), first(first), last(last), attention(attention) {}

  tile::Value batchCount() { return emitter.extent(extentOf(attention.batch, b.getContext())); }
  tile::Value rowCount() { return emitter.extent(extentOf(attention.rows, b.getContext())); }
  tile::Value keyCount() { return emitter.extent(attention.keys); }

  /// Return the coordinates of the scores for a batch index, and then for a row of that batch. The last coordinate,
  /// the key, is not set.
  tile::Values batch(tile::Value number);
  tile::Values row(const tile::Values &batch, tile::Value number);

  /// Return the loop indices of the scores' op and of the outputs' op at these coordinates, with the given
  /// head-dimension index (`dim`) or channel.
  tile::Values scoreLoops(const tile::Values &at, tile::Value dim);
  tile::Values outputLoops(const tile::Values &at, tile::Value channel);

  /// Returns a query's element at a row; null after a diagnostic.
  tile::Value query(const tile::Values &row, tile::Value dim);
  /// Returns how many leading keys the row's mask limits allow; 0 or less if they allow none.
  tile::Value keysWithin(const tile::Values &row);
  /// Returns how many keys are before the row's window, which must be known; 0 or less if there is none.
  tile::Value keysBefore(const tile::Values &row);
  /// Computes the score from a dot product of query and key, by the kernel's own ops.
  tile::Value score(const tile::Values &row, tile::Value key, tile::Value sum);
  /// Returns the larger value.
  tile::Value maximum(tile::Value x, tile::Value y);
  /// Returns the value that is subtracted from scores before exponentiation: `maximum`, or 0 if that is -infinity, so
  /// that the weights become 0 and not NaN.
  tile::Value reference(tile::Value maximum);
  /// Computes e^(score - reference), to the kernel's base.
  tile::Value weight(tile::Value score, tile::Value reference);
  /// Computes the row's results at the channel from the combined output over all keys, by normalisation and epilogue,
  /// and stores them.
  void finish(const tile::Values &row, tile::Value channel, const AttentionPart &part);

  tile::Value number(float value);
  /// Whether a diagnostic has been emitted.
  bool isBroken() const { return broken; }

private:
  tile::Values split(llvm::ArrayRef<AttentionAxis> axes, tile::Value number, tile::Values at);
  tile::Value orZero(tile::Value value);
  /// Evaluates a value of the mask's region that does not depend on the key; null after a diagnostic.
  tile::Value limit(mlir::Value value, const tile::Values &row);

  tile::Builder &b;
  ElementEmitter &emitter;
  const StageContext &first, &last;
  const Attention &attention;
  bool broken = false;
};

} // namespace kiln::cuda
