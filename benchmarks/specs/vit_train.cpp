// SPDX-License-Identifier: Apache-2.0
#include "vit_train.h"
#include <kiln/generator.h>

KILN_MODEL(vit_train, specs::VitTrain)
