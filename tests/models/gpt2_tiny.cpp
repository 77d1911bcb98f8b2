// SPDX-License-Identifier: Apache-2.0
// A tiny GPT-2 for tests of checkpoints.
#include "models/gpt2/gpt2.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"tokens", 1, 32};
using Tiny = specs::Gpt2<2, 48, 4, T, 67>;
KILN_MODEL(gpt2_tiny, Tiny)
