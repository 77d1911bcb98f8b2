// SPDX-License-Identifier: Apache-2.0
#include "specs/cnn.h"
#include <kiln/generator.h>

KILN_MODEL(small_cnn, specs::SmallCnn)
