// SPDX-License-Identifier: Apache-2.0
#include "bert_train.h"
#include <kiln/generator.h>

KILN_MODEL(bert_train, specs::BertTrain)
