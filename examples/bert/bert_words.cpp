// SPDX-License-Identifier: Apache-2.0
// BERT with its masked-word head, small enough to run immediately.
#include "models/bert/bert.h"
#include <kiln/generator.h>

static_assert(kiln::parameters<specs::BertForMaskedWords<specs::bert_base>>() == 109'514'298);
static_assert(kiln::parameters<specs::BertForMaskedWords<specs::bert_large>>() == 335'174'458);

using Small = specs::BertForMaskedWords<specs::BertShape{601, 3, 96, 4}>;
KILN_MODEL(bert_words, Small)
