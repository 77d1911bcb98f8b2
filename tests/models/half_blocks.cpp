// SPDX-License-Identifier: Apache-2.0
#include "specs/half_blocks.h"
#include <kiln/generator.h>

KILN_MODEL(half_blocks, specs::HalfBlocks)
