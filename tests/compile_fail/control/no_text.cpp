// SPDX-License-Identifier: Apache-2.0
//
// An incorrect program without an expected text: check.sh must not pass it.
#include "../cases/case.h"
using namespace kiln;
static_assert(false);
