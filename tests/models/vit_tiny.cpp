// SPDX-License-Identifier: Apache-2.0
// A tiny ViT for tests of checkpoints.
#include "models/vit/vit.h"
#include <kiln/generator.h>

using Tiny = specs::Vit<specs::VitShape{2, 48, 4, 32, 8, 10}>;
KILN_MODEL(vit_tiny, Tiny)
