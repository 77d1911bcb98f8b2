// SPDX-License-Identifier: Apache-2.0
//
// The forward is a template, so the types of the inputs are unknown.
// expect: kiln: model: its forward cannot be taken; expected one public function that is no template, or entries [model_c18]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(const tensor auto &x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
