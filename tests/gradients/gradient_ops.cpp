// SPDX-License-Identifier: Apache-2.0
#include "ops.h"
#include <kiln/generator.h>

KILN_MODEL(gradient_ops, specs::GradientOps)
