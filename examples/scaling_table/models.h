// SPDX-License-Identifier: Apache-2.0
//
// The models of the table, by their layers, width and heads.
#pragma once

#include "models/bert/bert.h"
#include "models/gpt2/gpt2.h"
#include "transformer/transformer.h"

namespace scaling {

inline constexpr kiln::Dim C1{"context_1024", 1, 1024}, C2{"context_2048", 1, 2048};

using XlnetLarge = specs::Bert<specs::BertShape{32000, 24, 1024, 16}>;
using RobertaLarge = specs::RobertaForMaskedWords<specs::roberta_large>;
template <std::int64_t Layers, std::int64_t Width, int Heads> using Gpt2 = specs::Gpt2<Layers, Width, Heads, C1>;
/// The released vocabulary, padded to a multiple of 128 for each of 8 devices.
template <std::int64_t Layers, std::int64_t Width, int Heads>
using Megatron = specs::Gpt2<Layers, Width, Heads, C1, 51200>;
using Gpt3 = specs::Gpt2<96, 12288, 96, C2>;
using MegatronTuring = specs::Gpt2<105, 20480, 128, C2>;

} // namespace scaling
