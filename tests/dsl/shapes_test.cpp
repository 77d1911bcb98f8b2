// SPDX-License-Identifier: Apache-2.0
//
// The result type of every operation, as static assertions inside models, and the attributes and values of nodes.
#include <cmath>

#include <gtest/gtest.h>

#include "kiln/dsl.h"

namespace {

using namespace kiln;

constexpr Dim B{"batch", 1, 8}, T{"tokens", 2, 64}, S{"source", 64, 128};

#define EXPECT_TYPE(X, ...) static_assert(std::is_same_v<decltype(X), Tensor<__VA_ARGS__>>)

struct Elementwise : Model {
  constexpr auto forward(Tensor<f32, B, T, 6> x, Tensor<f32, T, 1> column, Tensor<f32, 6> row, Tensor<i32, T> n) const {
    EXPECT_TYPE(x + x, f32, B, T, 6);
    EXPECT_TYPE(x - row, f32, B, T, 6);
    EXPECT_TYPE(row * x, f32, B, T, 6);
    EXPECT_TYPE(column / row, f32, T, 6);
    EXPECT_TYPE(maximum(x, column), f32, B, T, 6);
    EXPECT_TYPE(x + 1, f32, B, T, 6);
    EXPECT_TYPE(2.0 * x, f32, B, T, 6);
    EXPECT_TYPE(n * 2, i32, T);
    EXPECT_TYPE(maximum(x, 0), f32, B, T, 6);
    EXPECT_TYPE(add(x, sub(x, mul(x, div(x, 3)))), f32, B, T, 6);
    EXPECT_TYPE(exp(log(sqrt(tanh(sigmoid(x))))), f32, B, T, 6);
    EXPECT_TYPE(relu(gelu(gelu_tanh(silu(dropout(x, 0.1))))), f32, B, T, 6);
    return kiln::outputs(x + x, x - row, column / row, maximum(x, column) + 2.0 * x, n * 2,
                         exp(log(sqrt(tanh(sigmoid(x))))), relu(gelu(gelu_tanh(silu(dropout(x, 0.1))))));
  }
};
static_assert(trace<Elementwise>().entries.size() == 1);

struct Sources : Model {
  constexpr auto forward(Tensor<i32, B, T> ids, Tensor<f32, T, 6> x) const {
    auto table = parameter<f32, 64, 6>(x, "table");
    EXPECT_TYPE(table, f32, 64, 6);
    auto c = constant<f32, 2, 3>(x, {1, 2, 3, 4, 5, 6});
    EXPECT_TYPE(c, f32, 2, 3);
    EXPECT_TYPE(embedding(ids, table), f32, B, T, 6);
    EXPECT_TYPE(positions(ids), i32, T);
    EXPECT_TYPE(positions<0>(ids), i32, B);
    EXPECT_TYPE(positions<-2>(x), i32, T);
    EXPECT_TYPE(sinusoidal<6>(positions(ids)), f32, T, 6);
    return kiln::outputs(embedding(ids, table), sinusoidal<6>(positions(ids)), x + embedding(positions<-2>(x), table),
                         c);
  }
};
static_assert(trace<Sources>().parameters.size() == 1);

struct Contractions : Model {
  constexpr auto forward(Tensor<f32, B, T, 6> x, Tensor<f32, B, S, 6> memory, Tensor<f32, B, S, 12> values,
                         Tensor<f32, T, S> bias, Tensor<i32, B> n) const {
    auto out_in = parameter<f32, 4, 6>(x, "out_in");
    auto in_out = parameter<f32, 6, 4>(x, "in_out");
    auto b = parameter<f32, 4>(x, "b");
    EXPECT_TYPE(linear(x, out_in), f32, B, T, 4);
    EXPECT_TYPE(linear(x, out_in, b), f32, B, T, 4);
    EXPECT_TYPE(linear<WeightOrder::in_out>(x, in_out, b), f32, B, T, 4);
    EXPECT_TYPE(matmul(x, transpose<0, 2, 1>(memory)), f32, B, T, S);
    EXPECT_TYPE(matmul(x, in_out), f32, B, T, 4);
    EXPECT_TYPE(attention<3>(x, x, x), f32, B, T, 6);
    EXPECT_TYPE(attention<3>(x, memory, values), f32, B, T, 12);
    EXPECT_TYPE(attention<2>(x, memory, values, causal | mask(bias) | lengths(n) | scale(0.5)), f32, B, T, 12);
    return kiln::outputs(linear(x, out_in, b) + linear<WeightOrder::in_out>(x, in_out),
                         matmul(x, transpose<0, 2, 1>(memory)), attention<3>(x, x, x),
                         attention<2>(x, memory, values, causal | mask(bias) | lengths(n) | scale(0.5)));
  }
};

TEST(Shapes, AttentionAttributes) {
  Graph graph = trace<Contractions>();
  std::vector<Node> attentions;
  for (const Node &node : graph.nodes)
    if (node.op == Op::attention)
      attentions.push_back(node);
  ASSERT_EQ(attentions.size(), 2u);
  const Attributes &plain = attentions[0].attributes, &full = attentions[1].attributes;
  EXPECT_EQ(plain.heads, 3);
  EXPECT_DOUBLE_EQ(plain.scale, 1 / std::sqrt(2.0));
  EXPECT_FALSE(plain.causal || plain.has_mask || plain.has_lengths);
  EXPECT_EQ(attentions[0].operands.size(), 3u);
  EXPECT_EQ(full.heads, 2);
  EXPECT_EQ(full.scale, 0.5);
  EXPECT_TRUE(full.causal && full.has_mask && full.has_lengths);
  ASSERT_EQ(attentions[1].operands.size(), 5u);
  EXPECT_EQ(graph.nodes[attentions[1].operands[3]].shape.size(), 2u) << "the mask comes before the lengths";
}

struct Rows : Model {
  constexpr auto forward(Tensor<f32, B, T, 6> x) const {
    auto w = parameter<f32, 6>(x, "w"), b = parameter<f32, 6>(x, "b");
    EXPECT_TYPE(softmax(x), f32, B, T, 6);
    EXPECT_TYPE(log_softmax<1>(x), f32, B, T, 6);
    EXPECT_TYPE(layer_norm(x, w, b), f32, B, T, 6);
    EXPECT_TYPE(rms_norm(x, w), f32, B, T, 6);
    EXPECT_TYPE(mean(x), f32, B, T);
    EXPECT_TYPE(max<1>(x), f32, B, 6);
    EXPECT_TYPE(sum<0>(x), f32, T, 6);
    EXPECT_TYPE(argmax<-3>(x), i32, T, 6);
    EXPECT_TYPE(sum(sum(sum(x))), f32);
    EXPECT_TYPE(cumsum<1>(x), f32, B, T, 6);
    return kiln::outputs(softmax(x) + log_softmax<1>(x), layer_norm(x, w, b, 1e-3) + rms_norm(x, w), mean(x), max<1>(x),
                         sum<0>(x), argmax<-3>(x), sum(sum(sum(x))));
  }
};

TEST(Shapes, AxesAreNormalised) {
  Graph graph = trace<Rows>();
  for (const Node &node : graph.nodes) {
    if (node.op == Op::log_softmax || node.op == Op::max) {
      EXPECT_EQ(node.attributes.axis, 1);
    }
    if (node.op == Op::argmax) {
      EXPECT_EQ(node.attributes.axis, 0);
    }
    if (node.op == Op::mean) {
      EXPECT_EQ(node.attributes.axis, 2);
    }
    if (node.op == Op::layer_norm) {
      EXPECT_EQ(node.attributes.epsilon, 1e-3);
    }
    if (node.op == Op::rms_norm) {
      EXPECT_EQ(node.attributes.epsilon, 1e-6);
    }
  }
}

struct Movement : Model {
  constexpr auto forward(Tensor<f32, B, T, 6> x, Tensor<i32, B, 5> at) const {
    EXPECT_TYPE((reshape<B * T, 6>(x)), f32, B * T, 6);
    EXPECT_TYPE((reshape<B, T, 2, 3>(x)), f32, B, T, 2, 3);
    EXPECT_TYPE((reshape<B, 6 * T>(x)), f32, B, 6 * T);
    EXPECT_TYPE((transpose<2, 0, 1>(x)), f32, 6, B, T);
    EXPECT_TYPE((concat<-1>(x, x, x)), f32, B, T, 18);
    EXPECT_TYPE((concat<1>(x, x)), f32, B, 2 * T, 6);
    EXPECT_TYPE((slice<-1, 2, 4>(x)), f32, B, T, 4);
    EXPECT_TYPE((slice<1, 1, T - 1>(x)), f32, B, T - 1, 6);
    EXPECT_TYPE((slice<1, 0, 2>(x)), f32, B, 2, 6);
    EXPECT_TYPE((gather<-1>(x, at)), f32, B, T, B, 5);
    EXPECT_TYPE((gather(x, at)), f32, B, 5, T, 6);
    return kiln::outputs(reshape<B * T, 6>(x), transpose<2, 0, 1>(x), concat<1>(x, x), slice<-1, 2, 4>(x),
                         slice<1, 1, T - 1>(x), gather<-1>(x, at));
  }
};

TEST(Shapes, MovementAttributes) {
  Graph graph = trace<Movement>();
  int slices = 0;
  for (const Node &node : graph.nodes) {
    if (node.op == Op::transpose) {
      EXPECT_EQ(node.attributes.permutation, (std::vector<int>{2, 0, 1}));
    }
    if (node.op == Op::slice) {
      EXPECT_EQ(node.attributes.start, ++slices == 1 ? 2 : 1);
    }
    if (node.op == Op::concat) {
      EXPECT_EQ(node.operands.size(), 2u);
    }
  }
  EXPECT_EQ(slices, 2);
}

// Two comparisons in one expression.
constexpr Shape<2> pairs{{T, 3}};
static_assert(pairs == Shape<2>{{T, 3}} && !(pairs == Shape<2>{{T, 4}}));

// Element counts with sums of dimensions: the sums must be equal one by one.
static_assert(detail::same_count(Shape<2>{{T + 1, 6}}, Shape<3>{{2, T + 1, 3}}));
static_assert(!detail::same_count(Shape<2>{{T + 1, 6}}, Shape<2>{{T, 6}}));
static_assert(!detail::same_count(Shape<2>{{B, T}}, Shape<2>{{T, T}}));
static_assert(detail::same_count(Shape<0>{}, Shape<2>{{1, 1}}));

// A slice of one dimension by another must be valid for all values.
static_assert(detail::slice_within(T, 0, 2) && !detail::slice_within(T, 0, 3) && !detail::slice_within(T, 1, T));
static_assert(detail::slice_within(S, 0, T) && !detail::slice_within(T, 0, S) && !detail::slice_within(6, -1, 2));

struct Scalars : Model {
  constexpr auto forward(Tensor<f32, 2> x) const { return 1.5 - x; }
};

TEST(Shapes, NumbersBecomeConstantsOfRankZero) {
  Graph graph = trace<Scalars>();
  const Node &difference = graph.nodes[graph.regions[0].results[0]];
  const Node &number = graph.nodes[difference.operands[0]];
  EXPECT_EQ(number.op, Op::constant);
  EXPECT_TRUE(number.shape.empty());
  EXPECT_EQ(number.attributes.values, std::vector<double>{1.5});
  EXPECT_EQ(graph.nodes[difference.operands[1]].op, Op::input);
}

} // namespace
