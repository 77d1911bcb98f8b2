// SPDX-License-Identifier: Apache-2.0
//
// A name too long.
// expect: kiln: a dimension's name requires 1 to 23 characters [dim_c1]
#include "case.h"
using namespace kiln;
constexpr Dim long_name{"a_name_of_24_characters_", 1, 2};
