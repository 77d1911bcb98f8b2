// SPDX-License-Identifier: Apache-2.0
// A small model that decodes immediately.
#include "transformer.h"
#include <kiln/generator.h>

static_assert(kiln::parameters<specs::TransformerBase>() == 63'082'496);
static_assert(kiln::parameters<specs::TransformerLarge>() == 214'245'376);

using Small = specs::Translator<2, 64, 4, 256, 100>;
KILN_MODEL(translator, Small)
