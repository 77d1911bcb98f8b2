// SPDX-License-Identifier: Apache-2.0
//
// A quarter of three samples is no distance of frames.
// expect: forward: stft or istft: invalid frames; expected 2 to 65536 samples, 1 to 65536 apart, got 3 samples, 0 apart [stft_c2] (stft_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 64> x) const { return stft<3>(x).first; }
};
static_assert(parameters<M>() >= 0);
