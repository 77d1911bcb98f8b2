// SPDX-License-Identifier: Apache-2.0
// A spec such as `kiln new` writes for Phi.
#include "models/phi/phi.h"
#include <kiln/generator.h>

inline constexpr phi::Shape shape{.vocabulary = 99,
                                  .layers = 2,
                                  .width = 32,
                                  .heads = 4,
                                  .key_value_heads = 4,
                                  .hidden = 128,
                                  .turned = 4,
                                  .context = 16};

KILN_MODEL(writer, phi::Writer<shape>)
