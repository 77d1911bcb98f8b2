// SPDX-License-Identifier: Apache-2.0
//
// A sum of two run-time extents.
// expect: a_sum_of_dimensions_requires_the_form_offset_plus_factor_s0_s1_dim_c4
#include "case.h"
using namespace kiln;
constexpr Dim total = T + S;
