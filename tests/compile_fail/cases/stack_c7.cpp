// SPDX-License-Identifier: Apache-2.0
//
// A layer whose outputs are wanted returns only what it carries.
// expect: kiln: stack: wrong result of a layer with outputs; expected a std::pair of what the layers carry and of the outputs, tensors or tuples of them [stack_c7]
#include "case.h"
using namespace kiln;
struct M : Model {
  Stack<2, Linear<8, 8>> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h.with_outputs(x).first; }
};
static_assert(parameters<M>() >= 0);
