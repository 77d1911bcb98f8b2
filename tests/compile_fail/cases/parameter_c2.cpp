// SPDX-License-Identifier: Apache-2.0
//
// A layer is called in a stack first, then outside of it.
// expect: stack.{}.fc: parameter of a stack's layer: used outside the stack; expected a use inside it, got weight [parameter_c2] (parameter_c2.cpp:14)
#include "case.h"
using namespace kiln;
struct Lent {
  constexpr auto forward(const tensor auto &x, const Linear<8, 8> &fc) const { return fc(x); }
};

struct M : Model {
  Linear<8, 8> fc{"fc"};
  Stack<2, Lent> stack{"stack"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(stack(x, fc)); }
};
static_assert(parameters<M>() >= 0);
