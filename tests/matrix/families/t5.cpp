// SPDX-License-Identifier: Apache-2.0
// A spec such as `kiln new` writes for T5.
#include "models/t5/t5.h"
#include <kiln/generator.h>

inline constexpr t5::Shape shape{.vocabulary = 99,
                                 .layers = 2,
                                 .decoder_layers = 1,
                                 .width = 32,
                                 .heads = 4,
                                 .head = 8,
                                 .hidden = 64,
                                 .source = 16,
                                 .target = 12,
                                 .buckets = 8,
                                 .encoder_count = 1,
                                 .decoder_count = 2,
                                 .encoder_distances = {4},
                                 .decoder_distances = {5, 8},
                                 .is_gated = true,
                                 .is_tied = false};

KILN_MODEL(translator, t5::Translator<shape>)
