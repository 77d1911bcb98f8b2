// SPDX-License-Identifier: Apache-2.0
// A decoding GPT-2 that is small enough for the PTX interpreter.
#include "models/gpt2/gpt2.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"tokens", 1, 16}, Context{"context", T, 48};
using TinyWriter = specs::Gpt2Writer<2, 48, 4, T, Context, 67>;
KILN_MODEL(gpt2_tiny_writer, TinyWriter)
