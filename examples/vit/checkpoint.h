// SPDX-License-Identifier: Apache-2.0
//
// The tensor names of released ViT checkpoints in terms of models/vit/vit.h: they are equal, and some have a pooler.
#pragma once

#include "support/checkpoint.h"

namespace specs {

inline const std::vector<support::Rule> vit_checkpoint{{"vit.pooler.*", {}}};

} // namespace specs
