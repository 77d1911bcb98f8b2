// SPDX-License-Identifier: Apache-2.0
//
// Batched entries of random models.
#pragma once

#include "kiln/graph.h"

namespace kiln::fuzz {

/// So many sequences a call of a batched entry has at most.
inline constexpr int mostSequences = 4;

/// The same model with each entry batched that the language's rules let be (batch_c3, batch_c4).
Graph withBatches(Graph graph);

} // namespace kiln::fuzz
