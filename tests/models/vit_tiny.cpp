// SPDX-License-Identifier: Apache-2.0
// ViT of a size to make checkpoints of.
#include "vit/vit.h"
#include <kiln/generator.h>

using Tiny = specs::Vit<specs::VitShape{2, 48, 4, 32, 8, 10}>;
KILN_MODEL(vit_tiny, Tiny)
