// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/dsl.h>

inline constexpr kiln::Dim N{"n", 1, 64};

/// Classifies points of the plane: whether they are in the ring.
struct Net : kiln::Model {
  kiln::Linear<2, 32> hidden{"hidden"};
  kiln::Linear<32, 32> middle{"middle"};
  kiln::Linear<32, 2> head{"head"};

  constexpr auto forward(kiln::Tensor<kiln::f32, N, 2> points) const {
    return head(kiln::gelu(middle(kiln::gelu(hidden(points)))));
  }
  constexpr auto loss(kiln::Tensor<kiln::f32, N, 2> points, kiln::Tensor<kiln::i32, N> classes) const {
    return kiln::cross_entropy(forward(points), classes);
  }
};
