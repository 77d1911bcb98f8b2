// SPDX-License-Identifier: Apache-2.0
#include "captions.h"
#include <kiln/generator.h>

using Recurrent = captions::Recurrent<captions::Convolved, 32, 128, 64>;
KILN_MODEL(captions_recurrent, Recurrent)
