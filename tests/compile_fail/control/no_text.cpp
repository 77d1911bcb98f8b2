// SPDX-License-Identifier: Apache-2.0
//
// A wrong program that expects nothing: check.sh must not pass it.
#include "../cases/case.h"
using namespace kiln;
static_assert(false);
