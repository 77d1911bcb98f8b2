// SPDX-License-Identifier: Apache-2.0
//
// A parameter that is no tensor.
// expect: kiln: an entry requires tensors as its parameters [model_c6]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(int x) const { return x; }
};
static_assert(parameters<M>() >= 0);
