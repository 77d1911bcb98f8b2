// SPDX-License-Identifier: Apache-2.0
#include "bert.h"
#include <kiln/generator.h>

KILN_MODEL(bert_base, specs::BertBase)
