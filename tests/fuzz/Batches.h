// SPDX-License-Identifier: Apache-2.0
//
// Adds batched entries to random models.
#pragma once

#include "kiln/graph.h"

namespace kiln::fuzz {

/// The largest number of sequences per call of a batched entry.
inline constexpr int mostSequences = 4;

/// Returns the same model with every entry batched for which the language's rules permit it (batch_c3, batch_c4).
Graph withBatches(Graph graph);

} // namespace kiln::fuzz
