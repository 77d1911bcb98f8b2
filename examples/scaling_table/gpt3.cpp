// SPDX-License-Identifier: Apache-2.0
#include "models.h"
#include <kiln/generator.h>

KILN_MODEL(gpt3, scaling::Gpt3)
