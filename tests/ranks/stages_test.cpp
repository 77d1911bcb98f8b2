// SPDX-License-Identifier: Apache-2.0
// Models that are cut in stages beside the same models of one process: the same bits, calls that are under way at the
// same time, what a stage has of the weights, and what is refused.
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

#include "char_gpt.h"
#include "char_gpt_grid.h"
#include "char_gpt_ranks2.h"
#include "char_gpt_stages2.h"
#include "char_gpt_stages4.h"
#include "gpt2_stages3.h"
#include "gpt2_writer.h"
#include "thread_ranks.h"
#include "writer.h"

namespace kiln::test {
namespace {

WRITER(char_gpt, CHAR_GPT);
WRITER(char_gpt_ranks2, CHAR_GPT_RANKS2);
WRITER(char_gpt_stages2, CHAR_GPT_STAGES2);
WRITER(char_gpt_stages4, CHAR_GPT_STAGES4);
WRITER(char_gpt_grid, CHAR_GPT_GRID);
WRITER(gpt2_writer, GPT2_WRITER);
WRITER(gpt2_stages3, GPT2_STAGES3);

const std::string charGpt = KILN_EXAMPLES "/char_gpt/char_gpt.safetensors";
const std::string gpt2 = KILN_EXAMPLES "/gpt2/king_james/model.safetensors";
constexpr size_t letters = 63;

std::vector<int32_t> drawTokens(size_t vocabulary) {
  std::mt19937 random(std::random_device{}());
  std::vector<int32_t> tokens(64);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(random() % vocabulary);
  return tokens;
}

bool isSame(const std::vector<float> &got, const std::vector<float> &wanted) {
  return got.size() == wanted.size() && std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)) == 0;
}

/// The last stage has the logits of one process, to the bit; the others have none.
template <class One, class Staged> void expectSame(const std::string &weights, size_t vocabulary, uint32_t count) {
  const std::vector<int32_t> tokens = drawTokens(vocabulary);
  const std::vector<float> wanted = write<One>(weights, tokens, vocabulary);
  std::vector<std::vector<float>> got(count);
  ThreadRanks stages(count);
  stages.run([&](uint32_t stage) {
    const kiln_communicator_t communicator = stages.communicator(stage);
    got[stage] = write<Staged>(weights, tokens, vocabulary, nullptr, &communicator);
  });
  EXPECT_TRUE(isSame(got.back(), wanted));
  for (uint32_t stage = 0; stage + 1 < count; ++stage)
    EXPECT_TRUE(std::all_of(got[stage].begin(), got[stage].end(), [](float value) { return std::isnan(value); }));
  EXPECT_EQ(Staged::stateBytes, One::stateBytes / count);
  EXPECT_LT(Staged::weightBytes, One::weightBytes);
}

TEST(Stages, TwoAreTheSameBits) { expectSame<char_gpt, char_gpt_stages2>(charGpt, letters, 2); }
// With stages between the first and the last, of one layer each.
TEST(Stages, FourAreTheSameBits) { expectSame<char_gpt, char_gpt_stages4>(charGpt, letters, 4); }
// The table is the weight of the logits: the first stage and the last have it.
TEST(Stages, OfATiedTableAreTheSameBits) { expectSame<gpt2_writer, gpt2_stages3>(gpt2, 2000, 3); }

// Two ranks of two stages each: the bits of two ranks.
TEST(Stages, OfRanksAreTheSameBits) {
  const std::vector<int32_t> tokens = drawTokens(letters);
  std::vector<float> wanted;
  ThreadRanks two(2);
  two.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = two.communicator(rank);
    std::vector<float> logits = write<char_gpt_ranks2>(charGpt, tokens, letters, &communicator);
    if (rank == 0)
      wanted = std::move(logits);
  });
  ThreadRanks ranks[2] = {ThreadRanks(2), ThreadRanks(2)}, stages[2] = {ThreadRanks(2), ThreadRanks(2)};
  std::vector<std::vector<float>> got(4);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint32_t stage = 0; stage < 2; ++stage)
      threads.emplace_back([&, rank, stage] {
        const kiln_communicator_t ofRanks = ranks[stage].communicator(rank),
                                  ofStages = stages[rank].communicator(stage);
        got[stage * 2 + rank] = write<char_gpt_grid>(charGpt, tokens, letters, &ofRanks, &ofStages);
      });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(isSame(got[2], wanted));
  EXPECT_TRUE(isSame(got[3], wanted));
}

/// A stage of two, with a call.
class Stage {
public:
  explicit Stage(const kiln_communicator_t &stages) : arena((CHAR_GPT_STAGES2_FORWARD_ARENA_BYTES(1) + 63) / 64 * 64) {
    kiln_options_t options{};
    options.stage = stages.rank;
    options.stages = stages.size;
    EXPECT_EQ(char_gpt_stages2_create_on(&options, &model, &error), KILN_OK) << error.message;
    call = {arena.data, arena.bytes, nullptr, &error};
    call.stages = &stages;
  }
  ~Stage() { char_gpt_stages2_destroy(model); }
  Stage(const Stage &) = delete;

  void bind() { ASSERT_EQ(char_gpt_stages2_bind_weights(model, charGpt.c_str(), &error), KILN_OK) << error.message; }
  kiln_status_t forward(const std::vector<int32_t> &tokens, int64_t count, float *logits) {
    return char_gpt_stages2_forward(model, &call, count, tokens.data(), logits);
  }

  kiln_error_t error{};
  char_gpt_stages2_t *model = nullptr;
  const Memory arena;
  kiln_call_t call{};
};

// The first stage is through with five calls before the second one begins: none waits for what becomes of it.
TEST(Stages, AreAheadOfEachOther) {
  const std::vector<int32_t> tokens = drawTokens(letters);
  ThreadRanks stages(2);
  const kiln_communicator_t peers[2] = {stages.communicator(0), stages.communicator(1)};
  Stage first(peers[0]), second(peers[1]);
  first.bind();
  second.bind();
  for (int64_t count = 1; count <= 5; ++count)
    ASSERT_EQ(first.forward(tokens, count, nullptr), KILN_OK) << first.error.message;
  char_gpt_t *whole = nullptr;
  ASSERT_EQ(char_gpt_create(nullptr, &whole, nullptr), KILN_OK);
  ASSERT_EQ(char_gpt_bind_weights(whole, charGpt.c_str(), nullptr), KILN_OK);
  const Memory arena((CHAR_GPT_FORWARD_ARENA_BYTES(1) + 63) / 64 * 64);
  const kiln_call_t call{arena.data, arena.bytes, nullptr, nullptr};
  for (int64_t count = 1; count <= 5; ++count) {
    std::vector<float> got(static_cast<size_t>(count) * letters), wanted(got.size());
    ASSERT_EQ(second.forward(tokens, count, got.data()), KILN_OK) << second.error.message;
    ASSERT_EQ(char_gpt_forward(whole, &call, count, tokens.data(), wanted.data()), KILN_OK);
    EXPECT_TRUE(isSame(got, wanted)) << count;
  }
  char_gpt_destroy(whole);
}

} // namespace
} // namespace kiln::test
