// SPDX-License-Identifier: Apache-2.0
#include "specs/vit.h"
#include <kiln/generator.h>

KILN_MODEL(vit_base, specs::VitBase)
