// SPDX-License-Identifier: Apache-2.0
//
// The result is a diagonal.
// expect: forward: einsum: letter twice in one list; expected different ones, since diagonals are not supported, got ii->i [einsum_c3] (einsum_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, T> x) const { return einsum<"ii->i">(x); }
};
static_assert(parameters<M>() >= 0);
