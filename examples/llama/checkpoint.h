// SPDX-License-Identifier: Apache-2.0
//
// The tensor names of released Llama checkpoints in terms of models/llama/llama.h: they are equal, and older
// checkpoints also have the frequencies of the positions.
#pragma once

#include "support/checkpoint.h"

namespace specs {

inline const std::vector<support::Rule> llama_checkpoint{{"*.rotary_emb.inv_freq", {}}};

} // namespace specs
