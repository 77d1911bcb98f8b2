// SPDX-License-Identifier: Apache-2.0
#include "specs/transformer.h"
#include <kiln/generator.h>

KILN_MODEL(transformer_base, specs::TransformerBase)
