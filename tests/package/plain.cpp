// SPDX-License-Identifier: Apache-2.0
// A spec without KILN_MODEL, so it is not a program.
#include <kiln/dsl.h>

struct Plain : kiln::Model {
  kiln::Linear<6, 4> fc{"fc"};
  constexpr auto forward(kiln::Tensor<kiln::f32, 2, 6> x) const { return fc(x); }
};
static_assert(kiln::parameters<Plain>() == 28);
