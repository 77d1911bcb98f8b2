// SPDX-License-Identifier: Apache-2.0
// Whole models traced from their specs, compared with PyTorch in f64: every family of ops has an independent oracle.
#include "traced.h"

#include "kiln/dsl.h"
#include "kiln/generator.h"
#include "models/llama/llama.h"
#include "specs/cnn.h"
#include "swin/swin.h"

namespace attention_layers {
#include "attention_layers/spec.cpp"
}
namespace transformer_blocks {
#include "transformer/transformer_blocks.cpp"
}

namespace kiln::interpreter {
namespace {

using testing::Golden;

TEST(Goldens, SmallCnn) {
  const Golden golden("small_cnn.safetensors");
  Traced<SampledInterpreter> model(trace<specs::SmallCnn>());
  const std::vector<Tensor> y = model.run("forward", {{"batch", 1}}, {uniform("image", {1, 3, 90, 74})});
  expectGolden(golden, "B1.features", y[0], 0.5);
  expectGolden(golden, "B1.resized", y[1], 0.5);
  expectGolden(golden, "B1.logits", y[2], 0.5);
}

TEST(Goldens, Swin) {
  const Golden golden("swin.safetensors");
  Traced<SampledInterpreter> model(trace<swin::Swin<swin::two_stages>>());
  const std::vector<Tensor> y = model.run("forward", {{"batch", 1}}, {uniform("images", {1, 3, 56, 56})});
  expectGolden(golden, "B1.logits", y[0], 0.5);
  expectGolden(golden, "B1.features", y[1], 0.5);
}

TEST(Goldens, Llama) {
  const Golden golden("llama.safetensors");
  constexpr Dim B{"batch", 1, 4}, T{"tokens", 1, 256};
  Traced<SampledInterpreter> model(trace<llama::Llama<llama::small, B, T>>());
  for (auto [batch, count] : {std::pair{1, 1}, {3, 7}}) {
    const std::string name = "B" + std::to_string(batch) + "T" + std::to_string(count);
    const std::vector<Tensor> y =
        model.run("forward", {{"batch", batch}, {"tokens", count}}, {tokens("tokens", {batch, count}, 512)});
    expectGolden(golden, name + ".logits", y[0], 0.5);
  }
}

TEST(Goldens, TransformerBlocks) {
  const Golden golden("transformer_blocks.safetensors");
  Traced<SampledInterpreter> model(trace<transformer_blocks::Model>());
  struct Size {
    std::int64_t b, t, s;
  };
  for (auto [b, t, s] : {Size{1, 1, 1}, Size{3, 7, 5}}) {
    const std::string name = "B" + std::to_string(b) + "T" + std::to_string(t);
    const Extents extents{{"batch", b}, {"tokens", t}, {"source_tokens", s}};
    const Tensor x = uniform("x", {b, t, 72}, 2), memory = uniform("memory", {b, s, 72}, 2);
    const Tensor lengths = integers({b}, golden.integers(name + ".lengths"));
    for (const std::string kind : {"encode_post", "encode_pre"})
      expectGolden(golden, kind + "." + name + ".y", model.run(kind, extents, {x, lengths})[0], 0.5);
    for (const std::string kind : {"decode_post", "decode_pre"})
      expectGolden(golden, kind + "." + name + ".y", model.run(kind, extents, {x, memory})[0], 0.5);
  }
}

TEST(Goldens, AttentionLayers) {
  const Golden golden("attention_layers.safetensors");
  Traced<SampledInterpreter> model(trace<attention_layers::Model>());
  constexpr std::int64_t b = 3, n = 7, m = 5;
  const Extents extents{{"batch", b}, {"inputs", n}, {"queries", m}};
  const Tensor x = uniform("x", {b, n, 24}, 2), query = uniform("query", {b, 1, 24});
  const Tensor queries = uniform("queries", {b, m, 20}, 2), pixels = uniform("pixels", {b, 6, 7, 24}, 2);
  Tensor mask = uniform("mask", {n, n}), first = uniform("x", {n, 24}, 2),
         one = Tensor::zeros(ElementType::f32, {b, 20});
  for (std::int64_t i = 0; i < n * n; ++i)
    if (i % 3 == 1 && i % n > 0)
      mask.values[i] = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < b * 20; ++i)
    one.values[i] = queries.values[i / 20 * m * 20 + i % 20];
  const std::pair<const char *, std::vector<Tensor>> calls[] = {
      {"additive", {one, x}},         {"dot", {query, x}},           {"scaled_dot", {query, x}},
      {"many_queries", {queries, x}}, {"self_attention", {x}},       {"learned_positions", {x}},
      {"sine_positions", {x}},        {"joined_positions", {first}}, {"causal", {x}},
      {"masked", {x, mask}},          {"image_attention", {pixels}}, {"multi_head", {x}}};
  for (const auto &[name, inputs] : calls) {
    const std::vector<Tensor> y = model.run(name, extents, inputs);
    expectGolden(golden, name + std::string(".B3N7.y"), y[0], 0.5);
    expectGolden(golden, name + std::string(".B3N7.weights"), y[1], 0.5);
  }
}

TEST(Goldens, WorkedAttention) {
  const Golden golden("worked_attention.safetensors");
  Traced<SampledInterpreter> model(trace<attention_layers::Model>());
  for (const std::string sentence : {"S1", "S2", "S3"}) {
    const std::vector<float> x = golden.floats(sentence + ".x");
    const auto n = static_cast<std::int64_t>(x.size() / 2);
    const std::vector<Tensor> y =
        model.run("words", {{"inputs", n}}, {Tensor::of(ElementType::f32, {n, 2}, {x.begin(), x.end()})});
    EXPECT_LE(testing::relativeError(rounded(y[0]), golden.floats(sentence + ".scores")), goldenTolerance);
    EXPECT_LE(testing::relativeError(rounded(y[1]), golden.floats(sentence + ".weights")), goldenTolerance);
    EXPECT_LE(testing::relativeError(rounded(y[2]), golden.floats(sentence + ".y")), goldenTolerance);
  }
}

} // namespace
} // namespace kiln::interpreter
