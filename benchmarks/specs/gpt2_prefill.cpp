// SPDX-License-Identifier: Apache-2.0
#include "gpt2_prefill.h"
#include <kiln/generator.h>

KILN_MODEL(gpt2_prefill, specs::Gpt2Prefill)
