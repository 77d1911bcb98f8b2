// SPDX-License-Identifier: Apache-2.0
//
// For five of the classes, all weights.
#include "training.h"
#include <kiln/generator.h>

KILN_MODEL(fashion_vit_pretrain, fashion::Training<5>)
