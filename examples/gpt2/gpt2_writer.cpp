// SPDX-License-Identifier: Apache-2.0
//
// GPT-2 for text generation. GPT2_SHAPE is one of models/gpt2/shapes.h, which the build may select.
#include "models/gpt2/gpt2.h"
#include <kiln/generator.h>

#ifndef GPT2_SHAPE
#define GPT2_SHAPE gpt2_small
#endif

using Writer = specs::Gpt2WriterOf<specs::GPT2_SHAPE>;
KILN_MODEL(gpt2_writer, Writer)
