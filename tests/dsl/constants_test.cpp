// SPDX-License-Identifier: Apache-2.0
//
// Constants from arrays and functions, and other shapes with the same number of elements.
#include "kiln/dsl.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>

namespace {

inline constexpr kiln::Dim K{"k", 2, 9}, T{"tokens", 1, 64};
template <kiln::Dim... D> constexpr kiln::Shape<sizeof...(D)> shape{{D...}};

TEST(SameCount, TakesOutCommonFactors) {
  using kiln::detail::same_count;
  static_assert(same_count(shape<2 * K + 2, 3>, shape<K + 1, 2, 3>));
  static_assert(same_count(shape<2 * K + 2, 3>, shape<6, K + 1>));
  static_assert(same_count(shape<6 * K + 6>, shape<2, 3 * K + 3>));
  static_assert(!same_count(shape<6 * K + 6>, shape<2, 3 * K + 2>));
  static_assert(!same_count(shape<2 * K + 2, 3>, shape<K + 1, 5>));
  static_assert(same_count(shape<100 - 2 * K, 3>, shape<50 - K, 6>));
  static_assert(!same_count(shape<100 - 2 * K, 3>, shape<50 + K, 6>));
  static_assert(same_count(shape<4 * K * K - 4>, shape<K + 1, 4, K - 1>));
  static_assert(same_count(shape<9 * K * K - 4>, shape<3 * K + 2, 3 * K - 2>));
  static_assert(!same_count(shape<K * K + 4>, shape<K + 2, K + 2>));
  static_assert(same_count(shape<2 * K * T + 2>, shape<2, K * T + 1>));
  static_assert(!same_count(shape<2 * K * T + 2>, shape<2 * K, T + 1>));
  static_assert(same_count(shape<T, 12>, shape<T, 3, 4>) && same_count(shape<>, shape<1, 1>));
  static_assert(!same_count(shape<T, T>, shape<T>));
}

constexpr std::array<float, 4> window() { return {0.25f, 0.5f, 0.5f, 0.25f}; }
constexpr double square_of(std::int64_t i) { return static_cast<double>(i * i); }
struct M : kiln::Model {
  kiln::BatchNorm1d<4> norm{"norm"};
  constexpr auto forward(kiln::Tensor<kiln::f32, T, 4> x) const {
    constexpr float table[2][2] = {{1, 2}, {3, 4}};
    constexpr std::array<std::array<int, 2>, 2> nested{{{5, 6}, {7, 8}}};
    auto a = kiln::constant<kiln::f32, 4>(x, window());
    auto b = kiln::constant<kiln::f32, 2, 2>(x, table);
    auto c = kiln::constant<kiln::i32, 2, 2>(x, nested);
    auto d = kiln::constant<kiln::f32, 2, 3>(
        x, [](auto i, auto j) { return 10.0 * static_cast<double>(i) + static_cast<double>(j); });
    auto e = kiln::constant<kiln::f32, 4>(x, square_of);
    auto f = kiln::constant<kiln::f32>(x, [] { return 2.5; });
    return kiln::outputs(kiln::reshape<T, 2, 2>(norm(x) * a * e) + b * f + kiln::cast<kiln::f32>(c), d);
  }
};

bool has(std::initializer_list<double> values) {
  const kiln::Graph graph = kiln::trace<M>();
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const kiln::Node &node) {
    return node.op == kiln::Op::constant &&
           std::equal(node.attributes.values.begin(), node.attributes.values.end(), values.begin(), values.end());
  });
}

TEST(Constant, TakesArrays) {
  EXPECT_TRUE(has({0.25, 0.5, 0.5, 0.25})); // std::array of a constexpr function
  EXPECT_TRUE(has({1, 2, 3, 4}));           // float[2][2]
  EXPECT_TRUE(has({5, 6, 7, 8}));           // std::array of std::array
  EXPECT_FALSE(has({1, 3, 2, 4}));
}

TEST(Constant, CallsFunctionsWithIndices) {
  EXPECT_TRUE(has({0, 1, 2, 10, 11, 12}));
  EXPECT_TRUE(has({0, 1, 4, 9}));
  EXPECT_TRUE(has({2.5}));
}

TEST(BatchNorm1d, HasTheParametersOfPyTorch) { static_assert(kiln::parameters<M>() == 16); }

} // namespace
