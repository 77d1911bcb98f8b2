// SPDX-License-Identifier: Apache-2.0
// Five layers, four micro-batches.
#include "replicas.h"

KILN_MODEL(trained5, Trained<4, 5>)
