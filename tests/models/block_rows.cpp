// SPDX-License-Identifier: Apache-2.0
// Weights in blocks, or with bytes in groups, of odd sizes and in either order: products with one row and with many,
// and embedding lookups.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 33, 70};

struct BlockRows : kiln::Model {
  static constexpr kiln::Names inputs{"one_x", "x", "tokens"};
  static constexpr kiln::Names outputs{"byte",      "floats",    "small",    "four", "six",
                                       "many_byte", "many_four", "many_six", "table"};
  template <kiln::WeightOrder Order, kiln::WeightType Weight>
  using Product = kiln::Linear<256, 51, true, Order, Weight>;
  Product<kiln::WeightOrder::out_in, kiln::q8_0> byte{"byte"};
  Product<kiln::WeightOrder::in_out, kiln::fp8_block> floats{"floats"};
  Product<kiln::WeightOrder::out_in, kiln::nvfp4> small{"small"};
  Product<kiln::WeightOrder::out_in, kiln::q4_k> four{"four"};
  Product<kiln::WeightOrder::in_out, kiln::q6_k> six{"six"};
  kiln::Embedding<40, 96, kiln::q8_0> table{"table"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 1, 256> one, kiln::Tensor<kiln::f32, rows, 256> x,
                         kiln::Tensor<kiln::i32, rows> tokens) const {
    return kiln::outputs(byte(one), floats(one), small(one), four(one), six(one), byte(x), four(x), six(x),
                         table(tokens));
  }
};

KILN_MODEL(block_rows, BlockRows)
