// SPDX-License-Identifier: Apache-2.0
#include "transformer.h"
#include <kiln/generator.h>

KILN_MODEL(names_transformer, names::Transformer)
