// SPDX-License-Identifier: Apache-2.0
//
// What random models with batched entries have found.
#include "known.h"

namespace kiln::fuzz {
namespace {

inline constexpr Dim Rows{"rows_of_one", 1, 20};

#define KNOWN_BATCH(name, ...)                                                                                         \
  struct name : Model {                                                                                                \
    constexpr auto forward __VA_ARGS__                                                                                 \
  };                                                                                                                   \
  TEST(KnownBatches, name) { expectTrialRight<name>({.isBatched = true}, &Verdict::batches); }

// What all sequences share is the same to each of them: a weight as a result, operands of an attention that are
// computed of a weight or are constants.
KNOWN_BATCH(WeightAsResult, (Tensor<f32, 1> x) const { return kiln::outputs(parameter<f32, 1>(x, "w"), x); })
KNOWN_BATCH(
    SharedKeys, (Tensor<f32, 1, 2, 4> x) const {
      auto q = expand<1, 2, 4>(constant<f32>(x, {0.25f}));
      auto k = transpose<0, 2, 1>(parameter<f32, 1, 4, 2>(x, "w"));
      return kiln::outputs(attention<1>(q, q, x), attention<2>(x, k, k));
    })

// Attention in single steps, whose softmax treats rows of the first axis by themselves and whose products do not.
KNOWN_BATCH(
    AttentionInSteps, (Tensor<f32, 2, 3, 4> x) const {
      auto k = parameter<f32, 2, 3, 4>(x, "k"), v = parameter<f32, 2, 3, 4>(x, "v");
      auto q = transpose<0, 2, 1, 3>(reshape<2, 3, 2, 2>(x));
      auto scores = matmul(q, transpose<0, 2, 3, 1>(reshape<2, 3, 2, 2>(k)));
      auto y = matmul(softmax<-1>(scores), transpose<0, 2, 1, 3>(reshape<2, 3, 2, 2>(v)));
      return reshape<2, 3, 4>(transpose<0, 2, 1, 3>(y));
    })

// Rows of a sequence that are more than one element, seen through a view: of a scan, and of a state.
KNOWN_BATCH(
    RowsOfScan, (Tensor<f32, 2, 3> x, Tensor<i32, Rows> steps) const {
      return std::get<0>(scan(std::tuple<>(), std::tuple{steps}, [&](const auto &, const auto &) {
                           return std::pair{std::tuple<>(), std::tuple{x}};
                         }).second);
    })
struct RowsOfState : Model {
  State<f32, 20, 2, 3> kept{"kept"};
  constexpr auto forward(Tensor<f32, 1, 2, 3> x) const { return kept.append<Rows>(x); }
};
TEST(KnownBatches, RowsOfState) { expectTrialRight<RowsOfState>({.isBatched = true}, &Verdict::batches); }
struct ElementsOfState : Model {
  State<f32, 40> kept{"kept"};
  constexpr auto forward(Tensor<f32, 1> x) const { return kept.append<Rows>(x); }
};
TEST(KnownBatches, ElementsOfState) { expectTrialRight<ElementsOfState>({.isBatched = true}, &Verdict::batches); }

// A transposition that one entry folds into a sum and the other one does not: both add up in one order.
KNOWN_BATCH(
    SumsOfColumns, (Tensor<f32, 7, 40> x, Tensor<f32, 60, 7> y)
                       const { return sum<0>(transpose<1, 0>(transpose<1, 0>(exp(matmul(y, x))) * 0.3)); })
KNOWN_BATCH(
    SumsOfRows, (Tensor<f32, 7, 40> x, Tensor<f32, 60, 7> y)
                    const { return sum<1>(transpose<1, 0>(transpose<1, 0>(exp(matmul(y, x))) * 0.3)); })

// A scalar in between, and no result at all.
KNOWN_BATCH(ScalarBetween, (Tensor<f32, 3> x) const { return reshape<1>(mean<0>(x)); })
struct NoResult : Model {
  State<f32, 3> kept{"kept"};
  constexpr auto forward(Tensor<f32, 3> x) const {
    kept.store(x);
    return kiln::outputs();
  }
  constexpr auto second(Tensor<f32, 3> x) const { return x + kept.read<3>(x); }
  static constexpr auto entries() {
    return std::tuple{entry("forward", &NoResult::forward), entry("second", &NoResult::second)};
  }
};
TEST(KnownBatches, NoResult) { expectTrialRight<NoResult>({.isBatched = true}, &Verdict::batches); }

// Short floats are rounded behind each operation, whichever of them are in one kernel.
KNOWN_BATCH(RoundedBehindSoftmax, (Tensor<bf16, 2, 2> x) const { return sigmoid(softmax<0>(x)); })
KNOWN_BATCH(RoundedBehindProduct, (Tensor<f16, 3, 3> x) const { return linear(x, x) + x; })

// A factor stays where it is, in a kernel with what follows as in one by itself.
KNOWN_BATCH(
    FactorInPlace,
    (Tensor<f32, 2, 7, 1> x) const { return tanh(avg_pool2d<Pair(2, 7), Pool2dOptions{.stride = Pair(1, 1)}>(x)); })

// The last channel of five, of which a vector holds four.
KNOWN_BATCH(AttentionOfOddHeads, (Tensor<bf16, 1, 1, 2, 15> x) const { return attention<3>(x, x, x); })

} // namespace
} // namespace kiln::fuzz
