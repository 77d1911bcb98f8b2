// SPDX-License-Identifier: Apache-2.0
//
// A decoder for text generation. LLAMA_SHAPE is one of shapes.h, which the build may select.
#include "llama.h"
#include <kiln/generator.h>

#ifndef LLAMA_SHAPE
#define LLAMA_SHAPE king_james
#endif

using Writer = llama::Writer<llama::LLAMA_SHAPE>;
KILN_MODEL(llama_writer, Writer)
