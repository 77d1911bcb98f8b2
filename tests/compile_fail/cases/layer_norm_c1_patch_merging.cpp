// SPDX-License-Identifier: Apache-2.0
//
// The input has fewer channels than the merged patches.
// expect: part.norm: layer_norm: wrong input width; expected 32, got 28 [layer_norm_c1] (layer_norm_c1_patch_merging.cpp:10)
#include "case.h"
#include "kiln/windows.h"
using namespace kiln;
struct M : Model {
  PatchMerging<8> merging{"part"};
  constexpr auto forward(Tensor<f32, 4, 4, 7> x) const { return merging(x); }
};
static_assert(parameters<M>() >= 0);
