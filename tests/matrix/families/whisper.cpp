// SPDX-License-Identifier: Apache-2.0
// A spec such as `kiln new` writes for Whisper.
#include "models/whisper/whisper.h"
#include <kiln/generator.h>

inline constexpr whisper::Shape shape{.vocabulary = 99,
                                      .width = 32,
                                      .bins = 10,
                                      .encoder = {2, 4, 64},
                                      .decoder = {1, 4, 64},
                                      .source = 16,
                                      .target = 12};

KILN_MODEL(listener, whisper::Whisper<shape>)
