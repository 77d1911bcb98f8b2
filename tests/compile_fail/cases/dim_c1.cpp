// SPDX-License-Identifier: Apache-2.0
//
// The name of a dimension is too long.
// expect: kiln: dimension: name too short or too long; expected 1 to 23 characters [dim_c1]
#include "case.h"
using namespace kiln;
constexpr Dim long_name{"a_name_of_24_characters_", 1, 2};
