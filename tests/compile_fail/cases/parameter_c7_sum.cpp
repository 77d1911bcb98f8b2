// SPDX-License-Identifier: Apache-2.0
//
// A table that is looked up and, elsewhere, an addend.
// expect: wpe: a parameter that is stored in fewer bits requires linear, matmul, conv2d without groups or embedding to read it, as their weight [parameter_c7]: got weight in add
#include "case.h"
using namespace kiln;

struct M : Model {
  Embedding<64, 8, int8> wpe{"wpe"};
  constexpr auto forward(Tensor<f32, 64, 8> x) const { return wpe(positions<0>(x)) + wpe.weight(x); }
};
static_assert(parameters<M>() >= 0);
