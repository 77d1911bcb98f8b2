// SPDX-License-Identifier: Apache-2.0
#include "replicas.h"

KILN_MODEL(trained4, Trained<4>)
