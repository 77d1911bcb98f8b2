// SPDX-License-Identifier: Apache-2.0
// RoBERTa with its masked-word head, small enough to run immediately.
#include "models/bert/bert.h"
#include <kiln/generator.h>

static_assert(kiln::parameters<specs::RobertaForMaskedWords<specs::roberta_base>>() == 124'697'433);
static_assert(kiln::parameters<specs::RobertaForMaskedWords<specs::roberta_large>>() == 355'412'057);

using Small = specs::RobertaForMaskedWords<specs::roberta_shape(601, 3, 96, 4)>;
KILN_MODEL(roberta_words, Small)
