// SPDX-License-Identifier: Apache-2.0
//
// Shared by the training of both translators: batches of pairs, padded with 0 after their ends, the loss of logits, and
// the entries.
#pragma once

#include "kiln/dsl.h"
#include "names.h"

namespace names {

inline constexpr kiln::Dim B{"pairs", 1, batch};

/// Returns the number of tokens of each source [B, S].
constexpr auto lengths_of(const kiln::tensor auto &source) {
  return kiln::sum(kiln::cast<kiln::i32>(kiln::less(0, source)));
}

constexpr auto loss_of(const kiln::tensor auto &logits, const kiln::tensor auto &wanted) {
  return kiln::cross_entropy<kiln::CrossEntropyOptions{.ignore = 0, .label_smoothing = 0.05}>(logits, wanted);
}

/// Returns the entries of a model whose `loss` takes sources and targets, the latter with start and end. `undecayed`
/// parameters have no weight decay.
template <class Model> constexpr auto training_entries(kiln::Names undecayed) {
  return std::tuple{kiln::train("train", &Model::loss, {"source", "target"}, {"loss"},
                                kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.05})
                        .clipped(1)
                        .without_decay(undecayed),
                    kiln::entry("evaluate", &Model::loss, {"source", "target"}, {"loss"})};
}

} // namespace names
