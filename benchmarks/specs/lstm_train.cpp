// SPDX-License-Identifier: Apache-2.0
#include "lstm_train.h"
#include <kiln/generator.h>

KILN_MODEL(lstm_train, specs::LstmTrain)
