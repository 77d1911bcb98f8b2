// SPDX-License-Identifier: Apache-2.0
//
// A tensor is too large for the indices of kernels.
// expect: forward: tensor: too many elements; expected at most 2147483647, got [65536, 65536] [tensor_c4] (tensor_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 65536, 1> x, Tensor<f32, 1, 65536> y) const { return matmul(x, y); }
};
static_assert(parameters<M>() >= 0);
