// SPDX-License-Identifier: Apache-2.0
//
// How published checkpoints of GPT-2 call what gpt2.h has: some with a prefix, with the causal masks and the tied
// output.
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
