// SPDX-License-Identifier: Apache-2.0
// A spec such as `kiln new` writes for CLIP.
#include "models/clip/clip.h"
#include <kiln/generator.h>

inline constexpr clip::Shape shape{.text = {2, 32, 4, 64},
                                   .vision = {2, 48, 4, 96, false},
                                   .vocabulary = 99,
                                   .positions = 16,
                                   .image = 8,
                                   .patch = 4,
                                   .joint = 16};

KILN_MODEL(pictures, clip::Clip<shape>)
