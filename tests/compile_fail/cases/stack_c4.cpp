// SPDX-License-Identifier: Apache-2.0
//
// The layer of a stack has no option.
// expect: kiln: stack: its layer cannot be constructed; expected one that has a name, then the options that follow the name of the stack, or `using Layer::Layer;` and none [stack_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  Stack<2, Linear<8, 8>> h{"h", 1e-5};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
