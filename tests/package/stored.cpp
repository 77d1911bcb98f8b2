// SPDX-License-Identifier: Apache-2.0
// A model that states storage formats for its weights, and leaves one to the build.
#include <kiln/generator.h>

struct Stored : kiln::Model {
  kiln::Embedding<40, 8, kiln::stored<kiln::f16>> wte{"wte"};
  kiln::Linear<8, 8, true, kiln::WeightOrder::in_out, kiln::int8> fc{"fc"};
  kiln::Linear<8, 8> left{"left"};

  constexpr auto forward(kiln::Tensor<kiln::i32, 3> tokens) const { return left(fc(wte(tokens))); }
};

KILN_MODEL(stored, Stored)
