// SPDX-License-Identifier: Apache-2.0
//
// Names of parameters: the call path, the layers' children, and one parameter for tied weights.
#include <gtest/gtest.h>

#include "models/bert/bert.h"
#include "models/gpt2/gpt2.h"

namespace {

using namespace kiln;

template <class M> std::vector<std::string> names() {
  Graph graph = trace<M>();
  std::vector<std::string> result;
  for (const Parameter &parameter : graph.parameters)
    result.push_back(graph.name(parameter));
  return result;
}

using List = std::vector<std::string>;
constexpr Dim T{"tokens", 1, 16};

TEST(Names, OfTwoLayersOfGpt2) {
  using Small = specs::Gpt2<2, 8, 2>;
  EXPECT_EQ(names<Small>(),
            (List{"wte.weight", "wpe.weight", "h.{}.ln_1.weight", "h.{}.ln_1.bias", "h.{}.attn.c_attn.weight",
                  "h.{}.attn.c_attn.bias", "h.{}.attn.c_proj.weight", "h.{}.attn.c_proj.bias", "h.{}.ln_2.weight",
                  "h.{}.ln_2.bias", "h.{}.mlp.c_fc.weight", "h.{}.mlp.c_fc.bias", "h.{}.mlp.c_proj.weight",
                  "h.{}.mlp.c_proj.bias", "ln_f.weight", "ln_f.bias"}));
  for (const Parameter &parameter : trace<Small>().parameters)
    EXPECT_EQ(trace<Small>().copies(parameter.scope), trace<Small>().name(parameter).starts_with("h.") ? 2 : 1);
}

TEST(Names, OfConv1DAndLinearWeights) {
  auto shape = [](const Graph &graph, const std::string &name) {
    for (const Parameter &parameter : graph.parameters)
      if (graph.name(parameter) == name)
        return parameter.shape;
    return std::vector<std::int64_t>{};
  };
  EXPECT_EQ(shape(trace<specs::Gpt2Small>(), "h.{}.attn.c_attn.weight"), (std::vector<std::int64_t>{768, 2304}));
  EXPECT_EQ(shape(trace<specs::BertBase>(), "encoder.layer.{}.intermediate.dense.weight"),
            (std::vector<std::int64_t>{3072, 768}));
}

struct Blocks : Model {
  Stack<2, DecoderBlock<8, 2, 16>> decoder{"decoder"};
  EncoderBlock<8, 2, 16> single{"single"};
  RmsNorm<8> norm{"norm"};
  Linear<8, 4, false> head{"head"};
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 5, 8> memory) const {
    return head(norm(single(decoder(x, memory))));
  }
};

TEST(Names, OfBlocks) {
  List expected;
  auto add = [&](const std::string &owner, std::initializer_list<const char *> leaves) {
    for (const char *leaf : leaves) {
      expected.push_back(owner + leaf + ".weight");
      expected.push_back(owner + leaf + ".bias");
    }
  };
  add("decoder.{}.", {"norm1", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj",
                      "norm2", "cross_attn.q_proj", "cross_attn.k_proj", "cross_attn.v_proj", "cross_attn.out_proj",
                      "norm3", "mlp.fc1", "mlp.fc2"});
  add("single.", {"norm1", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "norm2",
                  "mlp.fc1", "mlp.fc2"});
  expected.insert(expected.end(), {"norm.weight", "head.weight"});
  EXPECT_EQ(names<Blocks>(), expected);
}

struct Tied : Model {
  Embedding<50, 8> table{"table"};
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(Tensor<i32, T> a, Tensor<i32, T> b) const {
    return logits(fc(fc(table(a))) + table(b), table);
  }
};
static_assert(parameters<Tied>() == 50 * 8 + 8 * 8 + 8);

TEST(Names, TiedWeightsAreOneParameter) { EXPECT_EQ(names<Tied>(), (List{"table.weight", "fc.weight", "fc.bias"})); }

struct Scorer : Layer<Scorer> {
  using Layer::Layer;
  LayerNorm<8> norm{"norm"};
  constexpr auto forward(const tensor auto &x, const Embedding<50, 8> &table) const { return logits(norm(x), table); }
};
struct Lent : Model {
  Embedding<50, 8> table{"table"};
  Scorer scorer{"scorer"};
  constexpr auto forward(Tensor<i32, T> tokens) const { return scorer(table(tokens), table); }
};

TEST(Names, ALentLayerKeepsTheScopeOfItsFirstCall) {
  EXPECT_EQ(names<Lent>(), (List{"table.weight", "scorer.norm.weight", "scorer.norm.bias"}));
}

struct Raw : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return x + parameter<f32, 8>(x, "offset") * parameter<f32, 8>(x, "offset");
  }
};

TEST(Names, ParametersOfTheModelItself) { EXPECT_EQ(names<Raw>(), List{"offset"}); }

} // namespace
