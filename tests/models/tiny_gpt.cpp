// SPDX-License-Identifier: Apache-2.0
// Widths that no vector divides, so that every instruction set meets its remainders.
#include "specs/char_gpt.h"
#include <kiln/generator.h>

KILN_MODEL(tiny_gpt, specs::CharGpt<3, 28, 2, 61>)
