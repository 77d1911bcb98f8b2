// SPDX-License-Identifier: Apache-2.0
#include "captions.h"
#include <kiln/generator.h>

KILN_MODEL(captions_transformer, captions::TrainedTransformer)
