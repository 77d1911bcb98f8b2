// SPDX-License-Identifier: Apache-2.0
// A model that two libraries have under the same name, with different widths: narrow.cpp and wide.cpp.
#pragma once

#include <kiln/generator.h>

template <int Width> struct Net : kiln::Model {
  static constexpr kiln::Names inputs{"x"}, outputs{"y"};
  kiln::Linear<Width, Width, false> fc{"fc"};
  constexpr auto forward(kiln::Tensor<kiln::f32, 64, Width> x) const { return kiln::relu(fc(x)); }
};
