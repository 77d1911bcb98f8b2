// SPDX-License-Identifier: Apache-2.0
#include "net.h"

KILN_MODEL(net, Net<64>)
