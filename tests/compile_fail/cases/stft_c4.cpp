// SPDX-License-Identifier: Apache-2.0
//
// Frames are 4 samples apart, but each number of samples is possible.
// expect: forward: stft: signal shorter than a frame, or a dynamic number of samples that the distance of frames does not divide; expected 16 samples, 4 apart, got f32[tokens+16 17..80] [stft_c4] (stft_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T + 16> x) const { return stft<16>(x).first; }
};
static_assert(parameters<M>() >= 0);
