// SPDX-License-Identifier: Apache-2.0
// Products of rows of int8, of odd sizes: weights in either order, with a bias and without, and with an epilogue.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 300};

struct Int8Rows : kiln::Model {
  static constexpr kiln::Names inputs{"x"}, outputs{"left", "right", "both"};
  kiln::Linear<77, 51> left{"left"};
  kiln::Linear<77, 130, false, kiln::WeightOrder::in_out> right{"right"};
  kiln::Linear<130, 9> last{"last"};

  constexpr auto forward(kiln::Tensor<kiln::f32, rows, 77> x) const {
    auto r = right(x);
    return kiln::outputs(left(x), r, last(kiln::relu(r)));
  }
};

KILN_MODEL(int8_rows, Int8Rows)
