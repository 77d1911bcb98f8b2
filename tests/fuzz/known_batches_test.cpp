// SPDX-License-Identifier: Apache-2.0
//
// Regression tests of failures that random models with batched entries have found.
#include "known.h"

namespace kiln::fuzz {
namespace {

inline constexpr Dim Rows{"rows_of_one", 1, 20};

#define KNOWN_BATCH(name, ...)                                                                                         \
  struct name : Model {                                                                                                \
    constexpr auto forward __VA_ARGS__                                                                                 \
  };                                                                                                                   \
  TEST(KnownBatches, name) { expectTrialRight<name>({.isBatched = true}, &Verdict::batches); }

// Values that all sequences share are the same for each of them: a weight as a result; attention operands that are
// constants or are computed from a weight.
KNOWN_BATCH(WeightAsResult, (Tensor<f32, 1> x) const { return kiln::outputs(parameter<f32, 1>(x, "w"), x); })
KNOWN_BATCH(
    SharedKeys, (Tensor<f32, 1, 2, 4> x) const {
      auto q = expand<1, 2, 4>(constant<f32>(x, {0.25f}));
      auto k = transpose<0, 2, 1>(parameter<f32, 1, 4, 2>(x, "w"));
      return kiln::outputs(attention<1>(q, q, x), attention<2>(x, k, k));
    })

// Decomposed attention, whose softmax treats rows of the first axis separately while its matrix products do not.
KNOWN_BATCH(
    AttentionInSteps, (Tensor<f32, 2, 3, 4> x) const {
      auto k = parameter<f32, 2, 3, 4>(x, "k"), v = parameter<f32, 2, 3, 4>(x, "v");
      auto q = transpose<0, 2, 1, 3>(reshape<2, 3, 2, 2>(x));
      auto scores = matmul(q, transpose<0, 2, 3, 1>(reshape<2, 3, 2, 2>(k)));
      auto y = matmul(softmax<-1>(scores), transpose<0, 2, 1, 3>(reshape<2, 3, 2, 2>(v)));
      return reshape<2, 3, 4>(transpose<0, 2, 1, 3>(y));
    })

// Rows of a sequence with more than one element, accessed through a view: of a scan, and of a state.
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

// A transpose that one entry folds into a sum and the other one does not: both must have the same summation order.
KNOWN_BATCH(
    SumsOfColumns, (Tensor<f32, 7, 40> x, Tensor<f32, 60, 7> y)
                       const { return sum<0>(transpose<1, 0>(transpose<1, 0>(exp(matmul(y, x))) * 0.3)); })
KNOWN_BATCH(
    SumsOfRows, (Tensor<f32, 7, 40> x, Tensor<f32, 60, 7> y)
                    const { return sum<1>(transpose<1, 0>(transpose<1, 0>(exp(matmul(y, x))) * 0.3)); })

// A scalar intermediate value; an entry without results.
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

// 16-bit floats are rounded after each operation, independently of kernel fusion.
KNOWN_BATCH(RoundedAfterSoftmax, (Tensor<bf16, 2, 2> x) const { return sigmoid(softmax<0>(x)); })
KNOWN_BATCH(RoundedAfterProduct, (Tensor<f16, 3, 3> x) const { return linear(x, x) + x; })

// A scale factor is applied at the same point whether the operation is fused with its consumer or not.
KNOWN_BATCH(
    FactorInPlace,
    (Tensor<f32, 2, 7, 1> x) const { return tanh(avg_pool2d<Pair(2, 7), Pool2dOptions{.stride = Pair(1, 1)}>(x)); })

// The last of five channels, of which a vector holds four.
KNOWN_BATCH(AttentionOfOddHeads, (Tensor<bf16, 1, 1, 2, 15> x) const { return attention<3>(x, x, x); })

} // namespace
} // namespace kiln::fuzz
