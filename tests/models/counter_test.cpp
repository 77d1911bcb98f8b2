// SPDX-License-Identifier: Apache-2.0
// The C++ generator gives the same bits as the Python one: oracle/counter.py printed every expected value here.
#include "counter.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace kiln::testing {
namespace {

TEST(Counter, HashesNames) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("h.0.ln_1.weight"), 0x09f7dddf4733e2ebu);
}

TEST(Counter, HashesIndices) {
  EXPECT_EQ(counter_hash(fnv1a64(""), 0), 0xc3817c016ba4ff30u);
  EXPECT_EQ(counter_hash(fnv1a64("tokens"), 0), 0xc257aedad53ee05au);
  EXPECT_EQ(counter_hash(fnv1a64("tokens"), 1), 0x4abeba048d509c2du);
  EXPECT_EQ(counter_hash(fnv1a64("wte.weight"), 38597375), 0x7bf237ad50bbea9du);
}

struct WeightCase {
  NamedShape parameter;
  float first, second, last;
};

// One case for each rule of the scale: embedding by leaf and by word, norm, bias, query, plain matrix, rank 4.
const WeightCase weight_cases[] = {
    {{"wte.weight", {50257, 768}}, -0x1.f48fbap-6f, -0x1.929f04p-5f, -0x1.9f1d34p-10f},
    {{"h.0.ln_1.weight", {768}}, 0x1.ef12a4p-1f, 0x1.f2b4b8p-1f, 0x1.e5df8ep-1f},
    {{"h.0.ln_1.bias", {768}}, -0x1.61e8c2p-8f, -0x1.46a732p-9f, 0x1.3e6d5ap-6f},
    {{"h.0.attn.c_attn.weight", {768, 2304}}, 0x1.a30c26p-7f, 0x1.048b4ep-6f, 0x1.49c51cp-4f},
    {{"h.11.mlp.c_fc.weight", {768, 3072}}, -0x1.db0d4p-8f, 0x1.b27e8cp-6f, 0x1.6e09f6p-6f},
    {{"embeddings.word_embeddings.weight", {30522, 768}}, -0x1.129c74p-5f, 0x1.513220p-6f, 0x1.866eaap-5f},
    {{"embeddings.LayerNorm.weight", {768}}, 0x1.cebdcep-1f, 0x1.d3fac4p-1f, 0x1.e53fc6p-1f},
    {{"features.0.weight", {64, 3, 3, 3}}, 0x1.0894p-3f, 0x1.3a9f52p-7f, 0x1.32c38ap-5f},
};

TEST(Counter, MakesWeights) {
  for (const WeightCase &c : weight_cases) {
    SCOPED_TRACE(c.parameter.name);
    uint64_t count = 1;
    for (int64_t extent : c.parameter.shape)
      count *= static_cast<uint64_t>(extent);
    EXPECT_EQ(counter_weight(c.parameter.name, c.parameter.shape, 0), c.first);
    EXPECT_EQ(counter_weight(c.parameter.name, c.parameter.shape, 1), c.second);
    EXPECT_EQ(counter_weight(c.parameter.name, c.parameter.shape, count - 1), c.last);
  }
}

TEST(Counter, MakesInputs) {
  const int32_t tokens[] = {19047, 9431, 4557, 26749, 19158, 21217, 22520, 5233};
  for (uint64_t i = 0; i < std::size(tokens); ++i)
    EXPECT_EQ(counter_token("tokens", i, 50257), tokens[i]);
  const float uniform[] = {-0x1.31f678p-1f, 0x1.3bee7p-1f, 0x1.2586d8p-2f, 0x1.4ffbe8p-1f};
  for (uint64_t i = 0; i < std::size(uniform); ++i)
    EXPECT_EQ(counter_uniform("x", i), uniform[i]);
}

// The second tensor is larger than the writer's block, and the header needs padding.
TEST(Counter, WritesSafetensors) {
  const std::vector<NamedShape> parameters = {{"norm.weight", {3}}, {"fc.weight", {257, 300}}};
  const std::string path = ::testing::TempDir() + "kiln_counter_test.safetensors";
  ASSERT_TRUE(write_safetensors(path, parameters));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::remove(path.c_str());

  const std::string header = "{\"norm.weight\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
                             "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[257,300],\"data_offsets\":[12,308412]}}";
  const size_t header_size = (header.size() + 7) / 8 * 8;
  ASSERT_EQ(bytes.size(), 8 + header_size + 308412);
  uint64_t stored_size;
  std::memcpy(&stored_size, bytes.data(), sizeof stored_size);
  EXPECT_EQ(stored_size, header_size);
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  auto value = [&](size_t i) {
    float v;
    std::memcpy(&v, bytes.data() + 8 + header_size + i * sizeof v, sizeof v);
    return v;
  };
  EXPECT_EQ(value(2), counter_weight("norm.weight", parameters[0].shape, 2));
  for (uint64_t i : {0u, 65535u, 65536u, 77099u})
    EXPECT_EQ(value(3 + i), counter_weight("fc.weight", parameters[1].shape, i));
}

TEST(Counter, ReportsAnUnwritableFile) { EXPECT_FALSE(write_safetensors("/nonexistent/weights.safetensors", {})); }

} // namespace
} // namespace kiln::testing
