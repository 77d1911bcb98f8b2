// SPDX-License-Identifier: Apache-2.0
#include "swin_block.h"
#include <kiln/generator.h>

KILN_MODEL(swin_block, specs::SwinBlock)
