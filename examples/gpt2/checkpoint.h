// SPDX-License-Identifier: Apache-2.0
//
// The tensor names of released GPT-2 checkpoints in terms of models/gpt2/gpt2.h: some have a prefix, the causal masks
// and the tied output.
#pragma once

#include "support/checkpoint.h"

namespace specs {

inline const std::vector<support::Rule> gpt2_checkpoint{
    {"transformer.*", {"*"}},
    {"*.attn.bias", {}},
    {"*.attn.masked_bias", {}},
    {"lm_head.weight", {}},
};

} // namespace specs
