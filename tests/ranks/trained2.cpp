// SPDX-License-Identifier: Apache-2.0
#include "replicas.h"

KILN_MODEL(trained2, Trained<2>)
