// SPDX-License-Identifier: Apache-2.0
#include "training.h"
#include <kiln/generator.h>

KILN_MODEL(fashion_vit_train, fashion::Training<10>)
