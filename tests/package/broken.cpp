// SPDX-License-Identifier: Apache-2.0
// A spec that breaks a rule, for the command line's tests: it must not compile.
#include <kiln/generator.h>

struct Broken : kiln::Model {
  kiln::Linear<5, 3> fc{"fc"};
  constexpr auto forward(kiln::Tensor<kiln::f32, 4> x) const { return fc(x); }
};

KILN_MODEL(broken, Broken)
