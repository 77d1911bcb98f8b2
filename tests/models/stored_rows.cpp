// SPDX-License-Identifier: Apache-2.0
// Quantised weights of each storage format, of odd sizes and in either order: matrix products, embedding lookups, and a
// convolution. Int4 weights are used with many rows and with one, since their skinny GEMM variants take long to
// compile.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 70}, many{"many", 33, 70};

struct StoredRows : kiln::Model {
  static constexpr kiln::Names inputs{"x", "many_x", "one_x", "tokens", "image"};
  static constexpr kiln::Names outputs{"half",     "brain",    "byte",  "four", "zero",
                                       "one_four", "one_zero", "table", "conv"};
  template <std::int64_t Out, kiln::WeightOrder Order, kiln::WeightType Weight>
  using Product = kiln::Linear<128, Out, Order == kiln::WeightOrder::out_in, Order, Weight>;
  Product<51, kiln::WeightOrder::out_in, kiln::stored<kiln::f16>> half{"half"};
  Product<130, kiln::WeightOrder::in_out, kiln::stored<kiln::bf16>> brain{"brain"};
  Product<51, kiln::WeightOrder::out_in, kiln::int8> byte{"byte"};
  Product<51, kiln::WeightOrder::out_in, kiln::int4<32>> four{"four"};
  Product<70, kiln::WeightOrder::in_out, kiln::int4_zero<64>> zero{"zero"};
  kiln::Embedding<40, 33, kiln::int8> table{"table"};
  kiln::Conv2d<16, 24, kiln::Pair(3, 3), kiln::Conv2dOptions{}, true, kiln::int8> conv{"conv"};

  constexpr auto forward(kiln::Tensor<kiln::f32, rows, 128> x, kiln::Tensor<kiln::f32, many, 128> z,
                         kiln::Tensor<kiln::f32, 1, 128> one, kiln::Tensor<kiln::i32, rows> tokens,
                         kiln::Tensor<kiln::f32, 7, 6, 16> image) const {
    return kiln::outputs(half(x), brain(x), byte(x), four(z), zero(z), four(one), zero(one), table(tokens),
                         conv(image));
  }
};

KILN_MODEL(stored_rows, StoredRows)
