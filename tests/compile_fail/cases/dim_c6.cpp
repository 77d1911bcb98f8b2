// SPDX-License-Identifier: Apache-2.0
//
// The least of an extent is no named one.
// expect: a_dimension_requires_a_named_extent_within_its_bounds_as_the_least_dim_c6
#include "case.h"
using namespace kiln;
constexpr Dim wrong{"context", T + 1, 128};
