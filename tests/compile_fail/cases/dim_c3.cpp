// SPDX-License-Identifier: Apache-2.0
//
// A product of three run-time extents.
// expect: a_product_of_dimensions_requires_the_form_offset_plus_factor_s0_s1_dim_c3
#include "case.h"
using namespace kiln;
constexpr Dim cube = B * T * S;
