// SPDX-License-Identifier: Apache-2.0
//
// For five of the classes, the head alone.
#include "training.h"
#include <kiln/generator.h>

KILN_MODEL(fashion_vit_head, fashion::HeadTraining<5>)
