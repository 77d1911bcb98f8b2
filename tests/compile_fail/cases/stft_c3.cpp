// SPDX-License-Identifier: Apache-2.0
//
// The window is longer than a frame.
// expect: forward: stft or istft: invalid window; expected one not longer than a frame; expected f32 of at most 16, got f32[17] [stft_c3] (stft_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 64> x) const { return stft<16>(x, hann_window<17>(x)).first; }
};
static_assert(parameters<M>() >= 0);
