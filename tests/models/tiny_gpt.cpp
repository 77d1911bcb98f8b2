// SPDX-License-Identifier: Apache-2.0
// No vector width divides the widths, so every instruction set needs remainder code.
#include "specs/char_gpt.h"
#include <kiln/generator.h>

KILN_MODEL(tiny_gpt, specs::CharGpt<3, 28, 2, 61>)
