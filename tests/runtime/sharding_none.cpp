// SPDX-License-Identifier: Apache-2.0
//
// For builds without KILN_PARALLEL, whose tests have no parallel models.
#include "support.h"

const kiln_sharding_t *kiln_test::sharding() { return nullptr; }
