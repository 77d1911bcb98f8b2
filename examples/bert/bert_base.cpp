// SPDX-License-Identifier: Apache-2.0
#include "models/bert/bert.h"
#include <kiln/generator.h>

KILN_MODEL(bert_base, specs::BertBase)
