// SPDX-License-Identifier: Apache-2.0
// A model that two libraries have under the same name, with different widths: narrow.cpp and wide.cpp.
#pragma once

#include <kiln/generator.h>

inline constexpr kiln::Dim R{"rows", 1, 64};

template <int Width> struct Net : kiln::Model {
  kiln::Linear<Width, Width, false> fc{"fc"};
  constexpr auto forward(kiln::Tensor<kiln::f32, 64, Width> x) const { return kiln::relu(fc(x)); }
  constexpr auto each(kiln::Tensor<kiln::f32, R, Width> x) const { return kiln::relu(fc(x)); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &Net::forward, {"x"}, {"y"}),
                      kiln::entry("each", &Net::each, {"x"}, {"y"})};
  }
};
