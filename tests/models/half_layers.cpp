// SPDX-License-Identifier: Apache-2.0
#include "specs/half_layers.h"
#include <kiln/generator.h>

KILN_MODEL(half_layers, specs::HalvesOfLayers)
