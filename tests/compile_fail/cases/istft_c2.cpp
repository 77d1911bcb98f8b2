// SPDX-License-Identifier: Apache-2.0
//
// The two halves of one frame are padding.
// expect: forward: istft: no samples; expected more frames, got f32[tokens 1..64, 9] [istft_c2] (istft_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 9> x) const { return istft<16>(x, x); }
};
static_assert(parameters<M>() >= 0);
