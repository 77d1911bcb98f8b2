// SPDX-License-Identifier: Apache-2.0
#include "model.h"
#include <kiln/generator.h>

KILN_MODEL(char_gpt, CharGpt<4, 128, 4>)
