// SPDX-License-Identifier: Apache-2.0
//
// Regression tests of failures that random models with several ranks and stages have found.
#include "known.h"

namespace kiln::fuzz {
namespace {

#define KNOWN_RANKS(name, ...)                                                                                         \
  struct name : Model {                                                                                                \
    constexpr auto forward __VA_ARGS__                                                                                 \
  };                                                                                                                   \
  TEST(KnownProcesses, name) { expectTrialRight<name>({.ranks = {.ranks = 2}}, &Verdict::together); }

// A weight without rows is not a table.
KNOWN_RANKS(
    ScalarWeight, (Tensor<f32, 3, 4> x) const {
      auto hidden = linear(x, parameter<f32, 6, 4>(x, "up"));
      return linear(hidden * parameter<f32>(x, "scale"), parameter<f32, 4, 6>(x, "down"));
    })

// A value that is its own weight is reduced once.
KNOWN_RANKS(
    OwnWeight, (Tensor<f32, 1, 3> x) const {
      auto w = parameter<f32, 2, 8>(x, "w");
      return kiln::outputs(linear(w, w), linear(linear(x, parameter<f32, 8, 3>(x, "up")), w));
    })

// Host communicators do not support sums of 16-bit floats.
KNOWN_RANKS(
    SumsOfBf16, (Tensor<bf16, 3, 4> x) const {
      auto hidden = gelu(linear(x, parameter<bf16, 6, 4>(x, "up")));
      return linear(hidden, parameter<bf16, 4, 6>(x, "down"), parameter<bf16, 4>(x, "bias"));
    })
// The sum is rounded after the bias is added, not before.
KNOWN_RANKS(
    BiasOfBf16, (Tensor<bf16, 4, 16> x) const {
      auto w = parameter<bf16, 16, 2>(x, "w");
      auto sums = linear(w, parameter<bf16, 64, 2>(x, "down"), parameter<bf16, 64>(x, "bias"));
      return kiln::outputs(sums, linear(linear<WeightOrder::in_out>(x, w), w));
    })
KNOWN_RANKS(
    RowsOfF16, (Tensor<i32, 5> words) const {
      auto table = parameter<f16, 16, 3>(words, "table");
      auto hidden = relu(linear(embedding(words, table), parameter<f16, 4, 3>(words, "up")));
      return linear(linear(hidden, parameter<f16, 3, 4>(words, "down")), table);
    })

struct SecondArgument {
  constexpr auto forward([[maybe_unused]] const tensor auto &first, const tensor auto &second) const { return second; }
};

// One process stores the matrix product, since it is an argument of its stack; the last of several stages fuses an
// epilogue into it. The bits of a sum must not depend on that.
struct ProductInAnEpilogueOfTheLastStage : Model {
  Stack<3, SecondArgument> stack{"stack"};
  constexpr auto forward(Tensor<f32, 17, 14> x, Tensor<f32, 17, 4> y) const {
    auto product = linear(tanh(x), parameter<f32, 4, 14>(x, "w"));
    return product * stack(product, y);
  }
};
TEST(KnownProcesses, ProductInAnEpilogueOfTheLastStage) {
  expectTrialRight<ProductInAnEpilogueOfTheLastStage>({.ranks = {.stages = 3}}, &Verdict::together);
}

// Likewise for an elementwise function: its polynomial has the same bits when it is fused into its consumer's kernel.
struct FunctionInAReaderOfTheLastStage : Model {
  Stack<3, SecondArgument> stack{"stack"};
  constexpr auto forward(Tensor<f32, 17, 14> x, Tensor<f32, 17, 14> y) const {
    auto function = tanh(x);
    return function * stack(function, y) * parameter<f32, 14>(x, "w") + y;
  }
};
TEST(KnownProcesses, FunctionInAReaderOfTheLastStage) {
  expectTrialRight<FunctionInAReaderOfTheLastStage>({.ranks = {.stages = 3}}, &Verdict::together);
}

// Fused attention and decomposed attention have different summation orders. Here the heads have two users in one
// process, so attention stays decomposed; in the last of several stages they have one user, and the bits must be the
// same.
struct AttentionInTheLastStage : Model {
  Stack<3, SecondArgument> stack{"stack"};
  constexpr auto forward(Tensor<f32, 8, 2, 8> x, Tensor<f32, 8, 2, 2, 4> y) const {
    auto split = kiln::reshape<8, 2, 2, 4>(x);
    auto heads = kiln::transpose<0, 2, 1, 3>(split);
    auto weights = softmax<3>(matmul(heads, kiln::transpose<0, 2, 3, 1>(split)));
    auto attended = kiln::transpose<0, 2, 1, 3>(matmul(weights, heads));
    return kiln::outputs(stack(attended, y), kiln::reshape<8, 2, 8>(attended));
  }
};
TEST(KnownProcesses, AttentionInTheLastStage) {
  expectTrialRight<AttentionInTheLastStage>({.ranks = {.stages = 3}}, &Verdict::together);
}

} // namespace
} // namespace kiln::fuzz
