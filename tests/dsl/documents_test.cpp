// SPDX-License-Identifier: Apache-2.0
//
// The specs that dsl/SPEC.md quotes: the names and shapes of their weights, those of the PyTorch modules that the
// document compares them with, and the shapes of their states.
#include <algorithm>
#include <gtest/gtest.h>
#include <kiln/generator.h>
#include <string>
#include <vector>

// Each spec has dimensions of its own, and a main, which this program replaces.
#undef KILN_MODEL
#define KILN_MODEL(name, ...)
namespace compositions {
#include "specs/compositions.cpp"
}
namespace denoiser {
#include "specs/denoiser.cpp"
}
namespace tagger {
#include "specs/tagger.cpp"
}

namespace {

using List = std::vector<std::string>;

/// "conv.weight [64, 64, 5]" for each element of Graph::parameters or Graph::states.
List described(const kiln::Graph &graph, const auto &elements) {
  List result;
  for (const auto &element : elements)
    result.push_back(graph.name(element) + kiln::Text().put(" ").put(element.shape).data());
  std::ranges::sort(result);
  return result;
}

// As Tagger().state_dict() of PyTorch 1.13 prints them, without bn.num_batches_tracked, which binding ignores.
TEST(Documents, TheTaggerHasPyTorchsWeights) {
  const kiln::Graph graph = kiln::trace<tagger::Tagger>();
  EXPECT_EQ(described(graph, graph.parameters), (List{"attn.in_proj_bias [192]",
                                                      "attn.in_proj_weight [192, 64]",
                                                      "attn.out_proj.bias [64]",
                                                      "attn.out_proj.weight [64, 64]",
                                                      "bn.bias [64]",
                                                      "bn.running_mean [64]",
                                                      "bn.running_var [64]",
                                                      "bn.weight [64]",
                                                      "conv.bias [64]",
                                                      "conv.weight [64, 64, 5]",
                                                      "embed.weight [1000, 64]",
                                                      "gru.bias_hh_l0 [96]",
                                                      "gru.bias_hh_l0_reverse [96]",
                                                      "gru.bias_ih_l0 [96]",
                                                      "gru.bias_ih_l0_reverse [96]",
                                                      "gru.weight_hh_l0 [96, 32]",
                                                      "gru.weight_hh_l0_reverse [96, 32]",
                                                      "gru.weight_ih_l0 [96, 64]",
                                                      "gru.weight_ih_l0_reverse [96, 64]",
                                                      "head.0.bias [64]",
                                                      "head.0.weight [64]",
                                                      "head.1.bias [64]",
                                                      "head.1.weight [64, 64]",
                                                      "head.3.bias [9]",
                                                      "head.3.weight [9, 64]"}));
}

TEST(Documents, TheDenoiserHasTwoStates) {
  const kiln::Graph graph = kiln::trace<denoiser::Denoiser>();
  EXPECT_EQ(described(graph, graph.states), (List{"heard [4, 40]", "memory [1, 64]"}));
}

TEST(Documents, TheCompositionsHaveATransposedConvolution) {
  const kiln::Graph graph = kiln::trace<compositions::Compositions>();
  EXPECT_EQ(described(graph, graph.parameters), (List{"up.bias [6]", "up.weight [8, 6, 4]"}));
}

} // namespace
