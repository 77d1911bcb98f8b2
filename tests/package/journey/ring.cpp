// SPDX-License-Identifier: Apache-2.0
#include "net.h"
#include <kiln/generator.h>

struct Ring : Net {
  static constexpr auto entries() { return std::tuple{kiln::entry("forward", &Ring::forward, {"points"}, {"logits"})}; }
};
KILN_MODEL(ring, Ring)
