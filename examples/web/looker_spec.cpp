// SPDX-License-Identifier: Apache-2.0
//
// The Vision Transformer of examples/fashion_vit, for single images.
#include "fashion_vit/fashion_vit.h"
#include <kiln/generator.h>

struct Looker : fashion::Trained {
  static constexpr auto entries() {
    return std::tuple{kiln::entry("look", &Looker::look, {"image"}, {"logits", "seen"})};
  }
};

KILN_MODEL(looker, Looker)
