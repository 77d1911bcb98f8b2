// SPDX-License-Identifier: Apache-2.0
#include "fashion_vit.h"
#include <kiln/generator.h>

KILN_MODEL(fashion_vit, fashion::Trained)
