// SPDX-License-Identifier: Apache-2.0
#include "models.h"
#include <kiln/generator.h>

KILN_MODEL(megatron_turing, scaling::MegatronTuring)
