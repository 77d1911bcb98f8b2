// SPDX-License-Identifier: Apache-2.0
#include "models/llama/llama.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"batch", 1, 4}, T{"tokens", 1, 256};

static_assert(kiln::parameters<llama::Llama<llama::tiny_llama_1b, B, T>>() == 1'100'048'384);
static_assert(kiln::parameters<llama::Llama<llama::llama_2_7b, B, T>>() == 6'738'415'616);
static_assert(kiln::parameters<llama::Llama<llama::llama_2_70b, B, T>>() == 68'976'648'192);
static_assert(kiln::parameters<llama::Llama<llama::llama_3_8b, B, T>>() == 8'030'261'248);
static_assert(kiln::parameters<llama::Llama<llama::mistral_7b, B, T>>() == 7'241'732'096);

using Small = llama::Llama<llama::small, B, T>;
KILN_MODEL(llama, Small)
