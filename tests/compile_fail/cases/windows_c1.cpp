// SPDX-License-Identifier: Apache-2.0
//
// The window size does not divide the height.
// expect: forward: windows: wrong rank of the image, or height or width that they do not divide; expected multiples of 4, got f32[tokens 1..64, 6, 8, 3] [windows_c1] (windows_c1.cpp:9)
#include "case.h"
#include "kiln/windows.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 6, 8, 3> x) const { return to_windows<4>(x); }
};
static_assert(parameters<M>() >= 0);
