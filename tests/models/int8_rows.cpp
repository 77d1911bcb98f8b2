// SPDX-License-Identifier: Apache-2.0
// Matrix products with int8 activations and odd sizes: weights in either order, with and without a bias, and with an
// epilogue; and int4 weights, whose groups are summed separately.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 300};

struct Int8Rows : kiln::Model {
  static constexpr kiln::Names inputs{"x"}, outputs{"left", "right", "both", "four", "zero"};
  kiln::Linear<77, 51> left{"left"};
  kiln::Linear<77, 130, false, kiln::WeightOrder::in_out> right{"right"};
  kiln::Linear<130, 9> last{"last"};
  kiln::Linear<128, 51, true, kiln::WeightOrder::out_in, kiln::int4<32>> four{"four"};
  kiln::Linear<128, 70, false, kiln::WeightOrder::in_out, kiln::int4_zero<64>> zero{"zero"};

  constexpr auto forward(kiln::Tensor<kiln::f32, rows, 77> x) const {
    auto r = right(x);
    auto y = kiln::slice<-1, 1, 128>(r);
    return kiln::outputs(left(x), r, last(kiln::relu(r)), four(y), zero(y));
  }
};

KILN_MODEL(int8_rows, Int8Rows)
