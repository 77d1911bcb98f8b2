// SPDX-License-Identifier: Apache-2.0
#include "models/vit/vit.h"
#include <kiln/generator.h>

KILN_MODEL(vit_base, specs::VitBase)
