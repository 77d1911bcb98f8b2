// SPDX-License-Identifier: Apache-2.0
//
// An entry has no inputs.
// expect: kiln: entry: no inputs; expected at least one [model_c7]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward() const { return 3; }
};
static_assert(parameters<M>() >= 0);
