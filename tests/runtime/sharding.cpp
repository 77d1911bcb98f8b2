// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include "core/sharding.h"

const kiln_sharding_t *kiln_test::sharding() { return &kiln_sharding; }
