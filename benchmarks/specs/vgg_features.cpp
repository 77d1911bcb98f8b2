// SPDX-License-Identifier: Apache-2.0
#include "tests/models/specs/vgg.h"
#include <kiln/generator.h>

KILN_MODEL(vgg_features, specs::Vgg13Features)
