// SPDX-License-Identifier: Apache-2.0
//
// The signal has integers.
// expect: forward: stft: invalid signal; expected f32 [..., samples] of rank 1 to 4, got i32[64] [stft_c1] (stft_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, 64> x) const { return stft<16>(x).first; }
};
static_assert(parameters<M>() >= 0);
