// SPDX-License-Identifier: Apache-2.0
//
// How published checkpoints of ViT call what vit.h has: the same, and some have a pooler.
#pragma once

#include "support/checkpoint.h"

namespace specs {

inline const std::vector<support::Rule> vit_checkpoint{{"vit.pooler.*", {}}};

} // namespace specs
