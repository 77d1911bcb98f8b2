// SPDX-License-Identifier: Apache-2.0
//
// The graphs of equations, and shapes of operations that move elements.
#include <kiln/dsl.h>

#include <algorithm>
#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr Dim B{"batch", 1, 4}, T{"tokens", 1, 16};

/// The number of nodes with this operation.
std::ptrdiff_t countOf(const Graph &graph, Op op) {
  return std::ranges::count_if(graph.nodes, [&](const Node &node) { return node.op == op; });
}

struct Quantised : Model {
  constexpr auto forward(Tensor<f32, B, T, 8> x) const {
    return outputs(einsum<"btc,oc->bto">(x, parameter<int8, 6, 8>(x, "out_in")),
                   einsum<"btc,co->bto">(x, parameter<int8, 8, 6>(x, "in_out")),
                   einsum<"oc,btc->bto">(parameter<int8, 6, 8>(x, "first"), x));
  }
};

TEST(Equations, WithAMatrixAreLinear) {
  const Graph graph = trace<Quantised>(); // a transposed int8 weight would break parameter_c7
  EXPECT_EQ(countOf(graph, Op::linear), 3);
  EXPECT_EQ(countOf(graph, Op::transpose) + countOf(graph, Op::reshape) + countOf(graph, Op::matmul), 0);
}

struct Batched : Model {
  constexpr auto forward(Tensor<f32, B, T, 8> x, Tensor<f32, B, 8, 3> y) const {
    return outputs(einsum<"btc,bcd->btd">(x, y), einsum<"btc,bcd->tbd">(x, y));
  }
};

TEST(Equations, OfMatricesTransposeOnlyWhatTheyMust) {
  const Graph graph = trace<Batched>();
  EXPECT_EQ(countOf(graph, Op::matmul), 2);
  EXPECT_EQ(countOf(graph, Op::transpose), 1);
  EXPECT_EQ(countOf(graph, Op::reshape), 0);
}

/// The shapes of results, also of dynamic dimensions.
struct Shapes : Model {
  constexpr auto forward(Tensor<f32, B, 2 * T, 6, 4> x, Tensor<i32, B, T> i) const {
    static_assert(decltype(unsqueeze<-1>(i))::shape == Shape<3>{{B, T, 1}});
    static_assert(decltype(squeeze<0>(unsqueeze<0>(i)))::shape == Shape<2>{{B, T}});
    static_assert(decltype(sum<1, keepdim>(x))::shape == Shape<4>{{B, 1, 6, 4}});
    static_assert(decltype(one_hot<7, boolean>(i))::shape == Shape<3>{{B, T, 7}});
    static_assert(decltype(pad<1, 2, 1, PadMode::edge>(i))::shape == Shape<2>{{B, T + 3}});
    static_assert(decltype(roll<1, 40>(i))::shape == Shape<2>{{B, T}});
    static_assert(decltype(pixel_shuffle<2>(x))::shape == Shape<4>{{B, 4 * T, 12, 1}});
    static_assert(decltype(pixel_unshuffle<2>(x))::shape == Shape<4>{{B, T, 3, 16}});
    static_assert(decltype(unfold<Pair(2, 3)>(x))::shape == Shape<3>{{B, 8 * T - 4, 24}});
    static_assert(decltype(argsort<1>(x))::shape == decltype(x)::shape && decltype(argsort(x))::element == i32);
    return outputs(x, i);
  }
};

TEST(Moves, HaveTheShapesOfTheirAxes) { EXPECT_EQ(trace<Shapes>().entries.size(), 1u); }

} // namespace
} // namespace kiln
