// SPDX-License-Identifier: Apache-2.0
//
// The structure of graphs: constant evaluation and execution give the same graph; regions and captures, the order of
// nodes.
#include <set>

#include <gtest/gtest.h>

#include "char_gpt.h"
#include "digest.h"
#include "models/bert/bert.h"
#include "models/gpt2/gpt2.h"
#include "transformer/transformer.h"

namespace {

using namespace kiln;

template <class M> void expect_same_at_run_time() {
  constexpr std::uint64_t at_compile_time = digest::of(trace<M>());
  EXPECT_EQ(digest::of(trace<M>()), at_compile_time);
}

TEST(Graph, IsTheSameAtCompileTimeAndAtRunTime) {
  expect_same_at_run_time<specs::Gpt2Small>();
  expect_same_at_run_time<specs::BertBase>();
  expect_same_at_run_time<specs::TransformerBase>();
  expect_same_at_run_time<specs::CharGpt<4, 128, 4, 70>>();
}

TEST(Graph, DigestSeesADifference) {
  EXPECT_NE(digest::of(trace<specs::Gpt2Small>()), digest::of(trace<specs::Gpt2Medium>()));
  using A = specs::CharGpt<4, 128, 4, 70>;
  using B = specs::CharGpt<4, 128, 2, 70>;
  EXPECT_NE(digest::of(trace<A>()), digest::of(trace<B>()));
}

/// Checks what the frontend relies on: an operand is before its use, in the same region or an enclosing one.
void check_order(const Graph &graph, int region, std::set<int> visible) {
  const Region &body = graph.regions[region];
  for (int argument : body.arguments) {
    EXPECT_EQ(graph.nodes[argument].op, Op::input);
    visible.insert(argument);
  }
  for (int id : body.nodes) {
    const Node &node = graph.nodes[id];
    EXPECT_NE(node.op, Op::input);
    for (int operand : node.operands)
      EXPECT_TRUE(visible.count(operand)) << "node " << id << " before its operand " << operand;
    if (has_body(node))
      check_order(graph, node.attributes.index, visible);
    visible.insert(id);
  }
  for (int result : body.results)
    EXPECT_TRUE(visible.count(result));
}

template <class M> void expect_order() {
  Graph graph = trace<M>();
  for (const Entry &entry : graph.entries)
    check_order(graph, entry.region, {});
}

struct Inner {
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(const tensor auto &x, const tensor auto &captured, const Linear<8, 8> &shared) const {
    return fc(x) + shared(captured);
  }
};
struct Outer {
  Stack<3, Inner> inner{"inner"};
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(const tensor auto &x, const tensor auto &captured, const Linear<8, 8> &shared) const {
    return inner(fc(x), captured + x, shared);
  }
};
constexpr Dim T{"tokens", 1, 16};
struct Nested : Model {
  Linear<8, 8> shared{"shared"};
  Stack<2, Outer> outer{"outer"};
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    auto dead = exp(x);
    (void)dead;
    return outer(shared(x), relu(x), shared);
  }
};

TEST(Graph, OperandsStandBeforeTheirUses) {
  expect_order<specs::Gpt2Small>();
  expect_order<specs::BertBase>();
  expect_order<specs::TransformerBase>();
  expect_order<Nested>();
}

TEST(Graph, NestedStacksKeepTheirOwnersParameters) {
  Graph graph = trace<Nested>();
  std::vector<std::string> names;
  std::vector<std::int64_t> copies;
  for (const Parameter &parameter : graph.parameters) {
    names.push_back(graph.name(parameter));
    copies.push_back(graph.copies(parameter.scope));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"shared.weight", "shared.bias", "outer.{}.fc.weight", "outer.{}.fc.bias",
                                             "outer.{}.inner.{}.fc.weight", "outer.{}.inner.{}.fc.bias"}));
  EXPECT_EQ(copies, (std::vector<std::int64_t>{1, 1, 2, 2, 6, 6}));
  EXPECT_EQ(graph.regions.size(), 3u);
}

struct OfLanguage : Model {
  Stack<2, Linear<8, 8>> lines{"lines"};
  Stack<3, LayerNorm<8>> norms{"norms", 1e-3};
  Stack<2, MultiHeadAttention<8, 2>> attentions{"attentions"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return attentions(norms(lines(x)), causal); }
};

TEST(Graph, LayersOfTheLanguageAreNamedAfterTheirStack) {
  Graph graph = trace<OfLanguage>();
  std::vector<std::string> names;
  for (const Parameter &parameter : graph.parameters)
    names.push_back(graph.name(parameter));
  names.resize(6);
  EXPECT_EQ(names, (std::vector<std::string>{"lines.{}.weight", "lines.{}.bias", "norms.{}.weight", "norms.{}.bias",
                                             "attentions.{}.q_proj.weight", "attentions.{}.q_proj.bias"}));
  EXPECT_EQ(parameters<OfLanguage>(), 2 * 72 + 3 * 16 + 2 * 4 * 72);
  EXPECT_EQ(graph.regions.size(), 4u);
}

TEST(Graph, StacksPassOptionsToTheirLayers) {
  int found = 0;
  for (const Node &node : trace<OfLanguage>().nodes)
    if (node.op == Op::layer_norm) {
      EXPECT_EQ(node.attributes.epsilon, 1e-3);
      ++found;
    }
  EXPECT_EQ(found, 1);
}

template <class Block> struct Wrapped : Model {
  Stack<2, Block> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
struct Written {
  constexpr auto forward(const tensor auto &x) const {
    return linear(x, parameter<f32, 8, 8>(x, "weight", Initial::fan_in(8)),
                  parameter<f32, 8>(x, "bias", Initial::fan_in(8)));
  }
};

TEST(Graph, LayersOfTheLanguageAreTracedAsWrittenOnes) {
  Graph graph = trace<Wrapped<Linear<8, 8>>>(), expected = trace<Wrapped<Written>>();
  ASSERT_EQ(graph.nodes.size(), expected.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    EXPECT_EQ(graph.nodes[i].op, expected.nodes[i].op);
    EXPECT_EQ(graph.nodes[i].operands, expected.nodes[i].operands);
    EXPECT_EQ(graph.nodes[i].scope, expected.nodes[i].scope);
  }
}

TEST(Graph, LeavesOutWhatNoResultNeeds) {
  for (const Node &node : trace<Nested>().nodes)
    EXPECT_NE(node.op, Op::exp);
}

TEST(Graph, AStackIsTracedOnce) {
  using Deep = specs::Gpt2<48, 768, 12>;
  EXPECT_EQ(trace<specs::Gpt2Small>().nodes.size(), trace<Deep>().nodes.size());
}

struct Looped {
  Linear<8, 8> hh{"hh"};
  constexpr auto forward(const tensor auto &x, const Linear<8, 8> &shared) const {
    auto [last, all] = scan<Direction::reverse>(zeros<f32, 8>(x), std::tuple{shared(x), x}, [&](auto h, auto here) {
      auto next = std::get<0>(here) + hh(h);
      return std::pair{next, std::tuple{exp(next), tanh(std::get<1>(here))}};
    });
    return std::get<1>(all) + last;
  }
};
struct Loop : Model {
  Linear<8, 8> shared{"shared"};
  Stack<2, Looped> layers{"layers"};
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    auto y = shared(x);
    return layers(y, shared) + y;
  }
};

TEST(Graph, AScanGivesWhatIsPicked) {
  Graph graph = trace<Loop>();
  expect_order<Loop>();
  expect_same_at_run_time<Loop>();
  const Node *loop = nullptr;
  std::vector<int> picked;
  for (const Node &node : graph.nodes) {
    if (node.op == Op::scan)
      loop = &node;
    if (node.op == Op::result) {
      EXPECT_EQ(&graph.nodes[node.operands.at(0)], loop);
      picked.push_back(node.attributes.index);
    }
  }
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->operands.size(), 3u);
  EXPECT_EQ(loop->attributes.states, 1);
  EXPECT_TRUE(loop->attributes.reverse);
  EXPECT_EQ(graph.regions[loop->attributes.index].arguments.size(), 3u);
  EXPECT_EQ(graph.regions[loop->attributes.index].results.size(), 3u);
  EXPECT_EQ(picked, (std::vector{2, 0})); // unused results have no op
}

struct Calls : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, T> i) const {
    auto [unread, y] = custom<"second", Tensor<i32, 3>, Tensor<f32, T, 8>>({.workspace = 8 * T, .derivative = "third"},
                                                                           custom<"first", Tensor<f32, T, 8>>(x), i);
    custom<"unused", Tensor<f32, T, 8>>(x);
    return custom<"first", Tensor<f32, T, 8>>(y);
  }
};

TEST(Graph, CustomFunctionsAreListedOnce) {
  Graph graph = trace<Calls>();
  expect_order<Calls>();
  expect_same_at_run_time<Calls>();
  static_assert(flops<Calls>({{"tokens", 3}}) == 0);
  ASSERT_EQ(graph.functions.size(), 2u); // in the order of their first call; without the unused one
  EXPECT_STREQ(graph.functions[0].name, "first");
  EXPECT_FALSE(graph.functions[0].has_derivative());
  EXPECT_EQ(graph.functions[0].workspace, Dim(0));
  const CustomFunction &second = graph.functions[1];
  EXPECT_STREQ(second.name, "second");
  EXPECT_STREQ(second.derivative, "third");
  EXPECT_EQ(second.workspace, 8 * T);
  EXPECT_EQ(second.operands, (std::vector<TensorType>{{f32, {T, 8}}, {i32, {T}}}));
  EXPECT_EQ(second.results, (std::vector<TensorType>{{i32, {3}}, {f32, {T, 8}}}));
  std::vector<int> called, picked;
  for (const Node &node : graph.nodes)
    if (node.op == Op::custom || node.op == Op::result)
      (node.op == Op::custom ? called : picked).push_back(node.attributes.index);
  EXPECT_EQ(called, (std::vector{0, 1, 0}));
  EXPECT_EQ(picked, (std::vector{0, 1, 0}));
}

TEST(Graph, AScansParametersBelongAroundIt) {
  Graph graph = trace<Loop>();
  for (const Region &region : graph.regions)
    for (int id : region.nodes) {
      const Node &node = graph.nodes[id];
      if (node.op != Op::parameter)
        continue;
      if (graph.name(graph.parameters[node.attributes.index]).starts_with("layers"))
        EXPECT_GT(region.scope, 0);
      else
        EXPECT_EQ(&region, &graph.regions[graph.entries[0].region]);
    }
  EXPECT_EQ(graph.parameters.size(), 4u);
  // The body of the loop counts as often as it runs.
  static_assert(flops<Loop>({{"tokens", 3}}) == 2 * 3 * 64 * (2 + 2 + 1));
}

struct Two : Model {
  Embedding<50, 8> table{"table"};
  Stack<2, EncoderBlock<8, 2, 16>> layers{"layers"};
  constexpr auto encode(Tensor<i32, T> tokens) const { return layers(table(tokens)); }
  constexpr auto score(Tensor<i32, T> tokens, Tensor<f32, T, 8> memory) const {
    return logits(layers(table(tokens) + memory), table);
  }
  static constexpr auto entries() {
    return std::tuple{entry("encode", &Two::encode, {"tokens"}, {"memory"}), entry("score", &Two::score)};
  }
};

TEST(Graph, EntriesShareWeights) {
  Graph graph = trace<Two>();
  ASSERT_EQ(graph.entries.size(), 2u);
  EXPECT_STREQ(graph.entries[0].name, "encode");
  EXPECT_STREQ(graph.entries[0].input_names[0], "tokens");
  EXPECT_STREQ(graph.entries[0].output_names[0], "memory");
  EXPECT_STREQ(graph.entries[1].input_names[1], "arg1");
  EXPECT_STREQ(graph.entries[1].output_names[0], "output");
  EXPECT_EQ(graph.parameters.size(), 1u + 16u);
  expect_order<Two>();
  static_assert(flops<Two>({{"tokens", 3}}, 1) == flops<Two>({{"tokens", 3}}, 0) + 2 * 3 * 8 * 50);
}

/// A window and no window, as types of layers.
template <int Keys> struct Windowed : Layer<Windowed<Keys>> {
  using Layer<Windowed<Keys>>::Layer;
  LayerNorm<8> norm{"norm"};
  MultiHeadAttention<8, 2> attn{"attn"};
  constexpr auto forward(const tensor auto &x) const {
    auto y = norm(x);
    if constexpr (Keys > 0)
      return x + attn(y, causal | window(Keys));
    else
      return x + attn(y, causal);
  }
};
template <int Layers> struct Alternating : Model {
  Stack<Layers, Pattern<5, Windowed<4>, 1, Windowed<0>>> layers{"layers"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return layers(x); }
};

TEST(Graph, PatternsOfAnyDepthHaveOneSize) {
  const Graph few = trace<Alternating<8>>(), many = trace<Alternating<6 * 200 + 2>>();
  EXPECT_EQ(few.nodes.size(), many.nodes.size());
  EXPECT_EQ(few.regions.size(), 5u); // the entry, the periods, a loop for each type, the incomplete period
  EXPECT_EQ(many.regions.size(), 5u);
  static_assert(parameters<Alternating<26>>() == 26 * (2 * 8 + 4 * (8 * 8 + 8)));
  static_assert(flops<Alternating<26>>({{"tokens", 3}}) * 8 == flops<Alternating<8>>({{"tokens", 3}}) * 26);
  expect_order<Alternating<26>>();
  expect_same_at_run_time<Alternating<26>>();
}

TEST(Graph, LayersOfPatternsAreNumberedThrough) {
  const Graph graph = trace<Alternating<8>>();
  std::vector<std::string> names, written;
  for (const Parameter &parameter : graph.parameters)
    if (std::string_view(parameter.leaf) == "weight" && graph.name(parameter).find("norm") != std::string::npos) {
      written.push_back(graph.written(parameter));
      for (const std::string &name : names_in_layers(graph.name(parameter), graph.layers(parameter.scope)))
        names.push_back(name);
    }
  EXPECT_EQ(written, std::vector<std::string>(3, "layers.{}.norm.weight"));
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.norm.weight", "layers.1.norm.weight", "layers.2.norm.weight",
                                             "layers.3.norm.weight", "layers.4.norm.weight", "layers.5.norm.weight",
                                             "layers.6.norm.weight", "layers.7.norm.weight"}));
}

TEST(Names, OfLayersAreSumsOverLoops) {
  EXPECT_EQ(name_in_layers("h.{}.weight", {3}), "h.3.weight");
  EXPECT_EQ(name_in_layers("a.{}.b.{}.c", {1, 2}), "a.1.b.2.c");
  EXPECT_EQ(name_in_layers("a.{}.b.{}.c", {1}), "a.1.b.0.c");
  EXPECT_EQ(name_in_layers("a.{}.l.{6k}.{}.{+5}.{}.b.{}.c", {4, 2, 0, 7}), "a.4.l.17.b.7.c");
  EXPECT_EQ(name_in_layers("l.{+24}.{}", {1}), "l.25");
  EXPECT_EQ(name_in_layers("=3 {} {}", {1, 2}), "=3 1 2");
  EXPECT_EQ(names_in_layers("w", {}), std::vector<std::string>{"w"});
  EXPECT_EQ(names_in_layers("l.{3k}.{}.{+1}.{}.w", {2, 2}),
            (std::vector<std::string>{"l.1.w", "l.2.w", "l.4.w", "l.5.w"}));
  EXPECT_EQ(written_name("a.{}.l.{6k}.{}.{+5}.{}.c"), "a.{}.l.{}.c");
  EXPECT_EQ(gradient_name("l.{6k}.{}.{+5}.{}.mlp.weight"), "grad_l_5_mlp_weight");
  EXPECT_EQ(number_terms("l.{6k}.{}.{+5}.{}.mlp").size(), 2u);
  EXPECT_EQ(number_terms("l.{6k}.{}.{+5}.{}.mlp")[0].factor, 6);
  EXPECT_EQ(number_terms("l.{6k}.{}.{+5}.{}.mlp")[1].offset, 5);
  EXPECT_TRUE(number_terms("a.{}.l.{6k}.{}.{+5}.{}").empty());
}

} // namespace
