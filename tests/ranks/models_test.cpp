// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel models compared with the same models in one process: trained weights, logits of prompts and of
// decoding with KV caches, for one sequence and for two, and the bytes that are sent.
#include <fstream>
#include <gtest/gtest.h>
#include <random>

#include "../seed.h"
#include "char_gpt.h"
#include "char_gpt_ranks2.h"
#include "char_gpt_ranks4.h"
#include "gpt2_ranks4.h"
#include "gpt2_writer.h"
#include "llama_int8_ranks1.h"
#include "llama_int8_ranks2.h"
#include "llama_ranks2.h"
#include "llama_ranks4.h"
#include "llama_writer.h"
#include "strict1.h"
#include "strict2.h"
#include "strict4.h"
#include "thread_ranks.h"
#include "writer.h"

namespace kiln::test {
namespace {

WRITER(char_gpt, CHAR_GPT);
WRITER(char_gpt_ranks2, CHAR_GPT_RANKS2);
WRITER(char_gpt_ranks4, CHAR_GPT_RANKS4);
WRITER(llama_writer, LLAMA_WRITER);
WRITER(llama_int8_ranks1, LLAMA_INT8_RANKS1);
WRITER(llama_int8_ranks2, LLAMA_INT8_RANKS2);
WRITER(llama_ranks2, LLAMA_RANKS2);
WRITER(llama_ranks4, LLAMA_RANKS4);
WRITER(gpt2_writer, GPT2_WRITER);
WRITER(gpt2_ranks4, GPT2_RANKS4);
WRITER(strict1, STRICT1);
WRITER(strict2, STRICT2);
WRITER(strict4, STRICT4);

struct Case {
  std::string folder;
  size_t vocabulary, width, layers;
  bool hasSplitTable;         // whether embeddings are reduced and logits gathered
  size_t keyHeads = SIZE_MAX; // may be less than the number of ranks
};

/// Returns the bytes that a rank sends in a call for `tokens` tokens in a ring of n ranks: two all-reduces per layer
/// (Shoeybi et al. 2019, section 3) and, with a split table, one for the embedding and an all-gather of the logits.
uint64_t sentBytes(const Case &model, uint64_t n, uint64_t tokens, uint64_t rowsOfLogits) {
  const uint64_t sums = 2 * model.layers + (model.hasSplitTable ? 1 : 0), bytes = tokens * model.width * 4;
  return sums * (2 * (n - 1) * bytes / n) +
         (model.hasSplitTable ? (n - 1) * (rowsOfLogits * model.vocabulary / n * 4) : 0);
}

template <class One, class Many> void expectSame(const Case &model, uint32_t count) {
  const std::string weights = std::string(KILN_EXAMPLES) + "/" + model.folder;
  std::mt19937 random(testing::testSeed());
  std::vector<int32_t> tokens(64);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(random() % model.vocabulary);
  const std::vector<float> wanted = write<One>(weights, tokens, model.vocabulary);
  std::vector<std::vector<float>> got(count);
  ThreadRanks ranks(count);
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    got[rank] = write<Many>(weights, tokens, model.vocabulary, &communicator);
  });
  EXPECT_LT(distance(got[0], wanted), 3e-6);
  for (uint32_t rank = 1; rank < count; ++rank)
    EXPECT_EQ(std::memcmp(got[rank].data(), got[0].data(), wanted.size() * sizeof(float)), 0) << rank;
  EXPECT_EQ(Many::stateBytes - markBytes, (One::stateBytes - markBytes) / std::min<size_t>(count, model.keyHeads));
  EXPECT_LT(Many::weightBytes, One::weightBytes);
  // The calls: a prompt, three tokens, one token, and a batch of two, whose logits are gathered for each sequence.
  const uint64_t sent =
      sentBytes(model, count, 37, 1) + 4 * sentBytes(model, count, 1, 1) + sentBytes(model, count, 2, 2);
  EXPECT_EQ(ranks.sentBytes, sent);
}

TEST(RanksModels, CharGptOfTwo) {
  expectSame<char_gpt, char_gpt_ranks2>({"char_gpt/char_gpt.safetensors", 63, 128, 4, false}, 2);
}
TEST(RanksModels, CharGptOfFour) {
  expectSame<char_gpt, char_gpt_ranks4>({"char_gpt/char_gpt.safetensors", 63, 128, 4, false}, 4);
}
// Grouped-query attention, rotary embeddings, gates, a split vocabulary.
TEST(RanksModels, LlamaOfTwo) {
  expectSame<llama_writer, llama_ranks2>({"llama/king_james/model.safetensors", 2000, 128, 4, true}, 2);
}
// Two key heads for four query heads: two ranks each have a copy.
TEST(RanksModels, LlamaOfFour) {
  expectSame<llama_writer, llama_ranks4>({"llama/king_james/model.safetensors", 2000, 128, 4, true, 2}, 4);
}
// Queries, keys and values are in one weight, stored [in, out]; the embedding table is tied to the logits.
TEST(RanksModels, Gpt2OfFour) {
  expectSame<gpt2_writer, gpt2_ranks4>({"gpt2/king_james/model.safetensors", 2000, 128, 3, true}, 4);
}

// Each rank quantises its part of the int8 weights and activations. The numbers therefore differ from those of one
// process as much as those of one process differ from f32.
TEST(RanksModels, LlamaOfTwoInInt8) {
  const std::string weights = KILN_EXAMPLES "/llama/king_james/model.safetensors";
  std::mt19937 random(testing::testSeed());
  std::vector<int32_t> tokens(64);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(random() % 2000);
  const std::vector<float> wanted = write<llama_writer>(weights, tokens, 2000);
  const double ofOne = distance(write<llama_int8_ranks1>(weights, tokens, 2000), wanted);
  ThreadRanks ranks(2);
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    EXPECT_LT(distance(write<llama_int8_ranks2>(weights, tokens, 2000, &communicator), wanted), 1.5 * ofOne) << rank;
  });
  EXPECT_LT(llama_int8_ranks2::weightBytes, 0.6 * llama_int8_ranks1::weightBytes);
}

TEST(RanksModels, HaveAManifestThatSaysSlices) {
  std::ifstream file(KILN_GPT2_RANKS4 "/gpt2_ranks4.manifest.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("\"ranks\": 4"), std::string::npos);
  // The weight of queries, keys and values, [128, 384], gives each rank 32 columns of each of the three.
  std::string words;
  for (char c : text.substr(std::min(text.find("attn.c_attn.weight\""), text.size())))
    if (c != ' ' && c != '\n')
      words += c;
  for (const char *section :
       {"{\"extent\":32,\"first\":0,\"group\":1,\"step\":32}", "{\"extent\":32,\"first\":128,\"group\":1,\"step\":32}",
        "{\"extent\":32,\"first\":256,\"group\":1,\"step\":32}"})
    EXPECT_NE(words.find(section), std::string::npos) << section;
  EXPECT_NE(words.find("\"slice\":{\"dimension\":1,\"of\":384,\"sections\":["), std::string::npos);
}

/// Expects the bits of one process.
template <class Many>
void expectSameBits(uint32_t count, const std::vector<int32_t> &tokens, const std::vector<float> &wanted) {
  ThreadRanks ranks(count);
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    const std::vector<float> got =
        write<Many>(KILN_EXAMPLES "/char_gpt/char_gpt.safetensors", tokens, 63, &communicator);
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)), 0) << rank << " of " << count;
  });
}

TEST(RanksModels, AreTheSameBitsWithSumsOfAsManyParts) {
  std::mt19937 random(testing::testSeed());
  std::vector<int32_t> tokens(64);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(random() % 63);
  const std::string weights = KILN_EXAMPLES "/char_gpt/char_gpt.safetensors";
  const std::vector<float> wanted = write<strict1>(weights, tokens, 63);
  EXPECT_LT(distance(wanted, write<char_gpt>(weights, tokens, 63)), 3e-6);
  expectSameBits<strict2>(2, tokens, wanted);
  expectSameBits<strict4>(4, tokens, wanted);
}

} // namespace
} // namespace kiln::test
