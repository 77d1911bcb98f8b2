// SPDX-License-Identifier: Apache-2.0
// A complete program, which a user passes as a spec by mistake.
#include <kiln/dsl.h>

struct Program : kiln::Model {
  kiln::Linear<6, 4> fc{"fc"};
  constexpr auto forward(kiln::Tensor<kiln::f32, 2, 6> x) const { return fc(x); }
};
static_assert(kiln::parameters<Program>() == 28);

int main() { return 0; }
