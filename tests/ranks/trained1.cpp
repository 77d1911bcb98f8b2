// SPDX-License-Identifier: Apache-2.0
#include "replicas.h"

KILN_MODEL(trained1, Trained<1>)
