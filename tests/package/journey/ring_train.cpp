// SPDX-License-Identifier: Apache-2.0
#include "net.h"
#include <kiln/generator.h>

struct RingTraining : Net {
  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &RingTraining::loss, {"points", "classes"}, {"loss"}, kiln::AdamW{})
                          .without_decay({"*.bias"})};
  }
};
KILN_MODEL(ring_train, RingTraining)
