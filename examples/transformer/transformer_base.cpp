// SPDX-License-Identifier: Apache-2.0
#include "transformer.h"
#include <kiln/generator.h>

KILN_MODEL(transformer_base, specs::TransformerBase)
