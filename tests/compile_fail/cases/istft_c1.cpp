// SPDX-License-Identifier: Apache-2.0
//
// Sixteen samples have nine bins.
// expect: forward: istft: invalid spectra; expected two of f32 [..., frames, samples / 2 + 1] of rank 2 to 5; expected 9 bins, got f32[tokens 1..64, 8] and f32[tokens 1..64, 8] [istft_c1] (istft_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return istft<16>(x, x); }
};
static_assert(parameters<M>() >= 0);
