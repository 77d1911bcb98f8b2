// SPDX-License-Identifier: Apache-2.0
//
// A parameter of an entry is no tensor.
// expect: kiln: entry: parameter is no tensor; expected tensors [model_c6]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(int x) const { return x; }
};
static_assert(parameters<M>() >= 0);
