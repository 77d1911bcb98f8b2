// SPDX-License-Identifier: Apache-2.0
#include "models/gpt2/gpt2.h"
#include <kiln/generator.h>

KILN_MODEL(gpt2_medium, specs::Gpt2Medium)
