// SPDX-License-Identifier: Apache-2.0
//
// A quantised table is looked up and also added.
// expect: wpe: parameter stored in fewer bits: unsupported use; expected the weight of linear, grouped_linear, matmul, conv2d without groups or embedding, got weight in add [parameter_c7]
#include "case.h"
using namespace kiln;

struct M : Model {
  Embedding<64, 8, int8> wpe{"wpe"};
  constexpr auto forward(Tensor<f32, 64, 8> x) const { return wpe(positions<0>(x)) + wpe.weight(x); }
};
static_assert(parameters<M>() >= 0);
