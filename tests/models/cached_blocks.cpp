// SPDX-License-Identifier: Apache-2.0
#include "specs/cached_blocks.h"
#include <kiln/generator.h>

KILN_MODEL(cached_blocks, specs::CachedBlocks)
