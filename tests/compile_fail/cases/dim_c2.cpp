// SPDX-License-Identifier: Apache-2.0
//
// Bounds the wrong way round.
// expect: a_dimension_requires_bounds_1_le_min_le_max_dim_c2
#include "case.h"
using namespace kiln;
constexpr Dim wrong{"tokens", 8, 1};
