// SPDX-License-Identifier: Apache-2.0
//
// A dimension exceeds 32 bits.
// expect: forward: dimension: too large; expected at most 2147483647, got 4294967296 [dim_c7]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, (std::int64_t{1} << 32)> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
