// SPDX-License-Identifier: Apache-2.0
//
// Training of only the head, for five of the classes.
#include "training.h"
#include <kiln/generator.h>

KILN_MODEL(fashion_vit_head, fashion::HeadTraining<5>)
