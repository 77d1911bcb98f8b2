// SPDX-License-Identifier: Apache-2.0
// The trained example: bits per character on held-out text must equal PyTorch's.
#include "buffers.h"
#include "char_gpt.h"
#include "golden.h"
#include "vocabulary.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

std::string readFile(const std::string &name) {
  const std::string bytes = kiln::testing::readWholeFile(CHAR_GPT_FOLDER "/" + name);
  EXPECT_FALSE(bytes.empty()) << "cannot read " << name;
  return bytes;
}

/// Returns -log2 of the probability of `wanted` under softmax(logits).
double bits(const float *logits, std::size_t vocabulary, std::size_t wanted) {
  double sum = 0;
  for (std::size_t c = 0; c < vocabulary; ++c)
    sum += std::exp(double{logits[c]} - double{logits[wanted]});
  return std::log2(sum);
}

TEST(CharGpt, HasPyTorchsBitsPerCharacter) {
  constexpr std::size_t context = CHAR_GPT_FORWARD_TOKENS_MAX, vocabulary = char_gpt::vocabulary.size();
  kiln_error_t error{};
  char_gpt_t *model = nullptr;
  ASSERT_EQ(char_gpt_create(nullptr, &model, &error), KILN_OK) << error.message;
  ASSERT_EQ(char_gpt_bind_weights(model, CHAR_GPT_FOLDER "/char_gpt.safetensors", &error), KILN_OK) << error.message;
  const std::size_t bytes = CHAR_GPT_FORWARD_ARENA_BYTES(1);
  const kiln::testing::GuardedMemory arena(bytes, kiln::testing::Guard::front);
  const kiln_call_t call{arena.data(), bytes, nullptr, &error};

  std::vector<std::int32_t> tokens;
  for (char c : readFile("heldout.txt"))
    tokens.push_back(static_cast<std::int32_t>(char_gpt::vocabulary.find(c)));
  std::vector<float> logits(context * vocabulary);
  double total = 0;
  std::size_t count = 0;
  for (std::size_t first = 0; first + context <= tokens.size(); first += context) {
    ASSERT_EQ(char_gpt_forward(model, &call, context, &tokens[first], logits.data()), KILN_OK) << error.message;
    for (std::size_t i = 0; i + 1 < context; ++i, ++count)
      total += bits(&logits[i * vocabulary], vocabulary, static_cast<std::size_t>(tokens[first + i + 1]));
  }
  char_gpt_destroy(model);

  const std::string expected = readFile("expected.json"), key = "\"bits_per_character\":";
  const std::size_t at = expected.find(key);
  ASSERT_NE(at, std::string::npos);
  ASSERT_GT(count, 10000u);
  EXPECT_NEAR(total / static_cast<double>(count), std::strtod(expected.c_str() + at + key.size(), nullptr), 1e-6);
}

} // namespace
