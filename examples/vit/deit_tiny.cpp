// SPDX-License-Identifier: Apache-2.0
#include "models/vit/vit.h"
#include <kiln/generator.h>

static_assert(kiln::parameters<specs::VitBase>() == 86'567'656);
static_assert(kiln::parameters<specs::DeitTiny>() == 5'910'800);
static_assert(kiln::parameters<specs::DeitBase>() == 87'338'192);

KILN_MODEL(deit_tiny, specs::DeitTiny)
