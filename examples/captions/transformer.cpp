// SPDX-License-Identifier: Apache-2.0
#include "captions.h"
#include <kiln/generator.h>

using Transformer = captions::Transformer<captions::Convolved, 1, 4>;
KILN_MODEL(captions_transformer, Transformer)
