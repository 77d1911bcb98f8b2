// SPDX-License-Identifier: Apache-2.0
//
// A decoder for text generation. LLAMA_SHAPE is one of models/llama/shapes.h, which the build may select.
#include "models/llama/llama.h"
#include <kiln/generator.h>

#ifndef LLAMA_SHAPE
#define LLAMA_SHAPE king_james
#endif

using Writer = llama::Writer<llama::LLAMA_SHAPE>;
KILN_MODEL(llama_writer, Writer)
