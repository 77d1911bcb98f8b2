// SPDX-License-Identifier: Apache-2.0
#include "gpt2_train.h"
#include <kiln/generator.h>

KILN_MODEL(gpt2_train, specs::Gpt2Train)
