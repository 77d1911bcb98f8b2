// SPDX-License-Identifier: Apache-2.0
#include "gpt2.h"
#include <kiln/generator.h>

KILN_MODEL(gpt2_writer, specs::Gpt2SmallWriter)
