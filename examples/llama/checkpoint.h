// SPDX-License-Identifier: Apache-2.0
//
// How published checkpoints of Llama call what llama.h has: the same, and older ones have the frequencies of the
// positions.
#pragma once

#include "support/checkpoint.h"

namespace specs {

inline const std::vector<support::Rule> llama_checkpoint{{"*.rotary_emb.inv_freq", {}}};

} // namespace specs
