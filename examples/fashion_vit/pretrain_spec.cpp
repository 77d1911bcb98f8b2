// SPDX-License-Identifier: Apache-2.0
//
// Training of all weights, for five of the classes.
#include "training.h"
#include <kiln/generator.h>

KILN_MODEL(fashion_vit_pretrain, fashion::Training<5>)
