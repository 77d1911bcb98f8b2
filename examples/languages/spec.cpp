// SPDX-License-Identifier: Apache-2.0
//
// A small model for programs in languages other than C and C++: three scores for each row of four numbers.
#include <kiln/generator.h>

inline constexpr kiln::Dim Rows{"rows", 1, 64};

struct Scorer : kiln::Model {
  static constexpr kiln::Names inputs{"x"}, outputs{"y"};
  kiln::Linear<4, 3> fc{"fc"};
  constexpr auto forward(kiln::Tensor<kiln::f32, Rows, 4> x) const { return kiln::relu(fc(x)); }
};

KILN_MODEL(scorer, Scorer)
