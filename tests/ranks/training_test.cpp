// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel training compared with training in one process: losses and norms of some steps, weights, optimiser
// state, and the bytes that are sent.
#include <gtest/gtest.h>
#include <random>

#include "../seed.h"
#include "decoder.h"
#include "decoder_ranks2.h"
#include "decoder_ranks4.h"
#include "decoder_rows2.h"
#include "decoder_strict1.h"
#include "decoder_strict2.h"
#include "decoder_strict4.h"
#include "session.h"
#include "thread_ranks.h"
#include "trainer.h"
#include "writer.h"

namespace kiln::test {
namespace {

#define TRAINER(name, NAME)                                                                                            \
  struct name {                                                                                                        \
    KILN_TRAINER(name, NAME);                                                                                          \
    static constexpr auto read = name##_read_weight;                                                                   \
    static constexpr auto trainAgain = name##_train_again;                                                             \
    static constexpr size_t arenaBytes = NAME##_TRAIN_ARENA_BYTES(1);                                                  \
    static constexpr size_t againBytes = NAME##_TRAIN_AGAIN_ARENA_BYTES(1);                                            \
  }
TRAINER(decoder, DECODER);
TRAINER(decoder_ranks2, DECODER_RANKS2);
TRAINER(decoder_ranks4, DECODER_RANKS4);
TRAINER(decoder_rows2, DECODER_ROWS2);
TRAINER(decoder_strict1, DECODER_STRICT1);
TRAINER(decoder_strict2, DECODER_STRICT2);
TRAINER(decoder_strict4, DECODER_STRICT4);

constexpr int64_t batch = 3, steps = 12, vocabulary = 509, width = 32, layers = 2, ignored = 7, keyHeads = 2;

/// Returns the losses and norms of ten AdamW steps and two gradient-descent steps, and the loss without training.
template <class Api>
std::vector<float> train(uint32_t seed, std::vector<float> &norms, const kiln_communicator_t *communicator = nullptr) {
  kiln_error_t error{};
  kiln_options_t options{};
  if (communicator) {
    options.rank = communicator->rank;
    options.ranks = communicator->size;
  }
  auto check = [&](kiln_status_t status) { ASSERT_EQ(status, KILN_OK) << error.message; };
  typename Api::Model *made = nullptr;
  check(Api::create(&options, &made, &error));
  const std::unique_ptr<typename Api::Model, void (*)(typename Api::Model *)> model(made, Api::destroy);
  const testing::WeightImage image(std::vector<testing::WeightShape>{DECODER_WEIGHTS(KILN_TEST_WEIGHT)});
  check(Api::bind(made, image.data(), image.size(), &error));
  const Memory arena((std::max(Api::arenaBytes, Api::againBytes) + 63) / 64 * 64);
  std::memset(arena.data, 0, Api::trainingBytes);
  kiln_call_t call{arena.data, arena.bytes, nullptr, &error};
  call.communicator = communicator;
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(batch * steps), targets(batch * steps);
  std::vector<float> losses;
  for (int32_t step = 1; step <= 12; ++step) {
    for (int32_t &word : tokens)
      word = static_cast<int32_t>(random() % vocabulary);
    for (int32_t &word : targets) // -1 and 509 are not valid classes
      word = static_cast<int32_t>(random() % (vocabulary + 2)) - 1;
    targets[step] = ignored;
    const float rate = step <= 10 ? 1e-2f : 1e-1f;
    float norm = NAN;
    losses.push_back(NAN);
    if (step <= 10)
      check(Api::train(made, &call, batch, tokens.data(), targets.data(), &rate, &step, &losses.back(), &norm));
    else
      check(Api::trainAgain(made, &call, batch, tokens.data(), targets.data(), &rate, &step, &losses.back()));
    norms.push_back(norm);
  }
  losses.push_back(NAN);
  check(Api::evaluate(made, &call, batch, tokens.data(), targets.data(), &losses.back()));
  // A weight that every rank has in whole, whose gradient is a sum over the ranks.
  float weights[width / 4];
  check(Api::read(made, "blocks.1.query_norm.weight", 0, width / 4, weights, &error));
  losses.insert(losses.end(), std::begin(weights), std::end(weights));
  return losses;
}

/// Returns the bytes that a ring of n ranks sends: a training of ten steps, two steps with recomputed layers, and the
/// loss only.
uint64_t sentBytes(uint64_t n) {
  constexpr uint64_t rows = batch * steps;
  auto sum = [&](uint64_t numbers) { return 2 * (n - 1) * numbers * sizeof(float) / n; };
  // The forward pass has one all-reduce for the embedding and two per layer; the backward pass has two per layer and
  // one for the input of the logits (Shoeybi et al. 2019, section 3). The maximum logit of each row is gathered; its
  // sum of exponentials and its target's logit are reduced.
  const uint64_t whole = sum(rows * width), largest = (n - 1) * rows * sizeof(float);
  const uint64_t forward = (1 + 2 * layers) * whole + largest + 2 * sum(rows);
  // The norm of query heads is a weight that all ranks have alike, as are keys and values if there are fewer heads than
  // ranks.
  const uint64_t keys = n > keyHeads ? 2 * sum(rows * keyHeads * width / 4) : 0;
  const uint64_t backward = (2 * layers + 1) * whole + layers * (sum(width / 4) + keys), norm = sum(1);
  // Label smoothing sums all likelihoods. The last all-reduce of a recomputed layer is not needed. Without a norm, the
  // ranks exchange whether their gradients are finite.
  const uint64_t isFinite = sum(1), again = forward + sum(rows) + layers * whole + backward + isFinite;
  return 10 * (forward + backward + norm) + 2 * again + forward;
}

/// Returns the additional bytes with sequence parallelism, in which ranks have parts of the rows between the layers. A
/// reduce-scatter and an all-gather replace each all-reduce and send as much, except in recomputed layers, which gather
/// their rows twice and reduce-scatter once.
uint64_t sentForRows(uint64_t n) {
  constexpr uint64_t rows = batch * steps;
  const uint64_t half = (n - 1) * rows * width * sizeof(float) / n;
  // Two norms and two biases per layer, and the last norm's weight and bias, have gradients from all ranks.
  const uint64_t weights = (4 * layers + 2) * (2 * (n - 1) * width * sizeof(float) / n);
  return 12 * weights + 2 * layers * half;
}

template <class Api, size_t count> void expectSame(uint64_t sent = sentBytes(count)) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<float> norms;
  const std::vector<float> wanted = train<decoder>(seed, norms);
  ASSERT_EQ(wanted.size(), 13u + width / 4);
  ThreadRanks ranks(count);
  std::vector<float> got[count], gotNorms[count];
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    got[rank] = train<Api>(seed, gotNorms[rank], &communicator);
  });
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got[0][i], wanted[i], 2e-4 * std::abs(wanted[i]) + 1e-5) << i;
  for (size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(gotNorms[0][i], norms[i], 1e-3 * norms[i]) << i;
  for (size_t rank = 1; rank < count; ++rank)
    EXPECT_EQ(std::memcmp(got[0].data(), got[rank].data(), wanted.size() * sizeof(float)), 0) << rank;
  EXPECT_EQ(ranks.sentBytes, sent);
}

TEST(RanksTraining, IsThatOfOneProcess) {
  expectSame<decoder_ranks2, 2>();
  EXPECT_LT(decoder_ranks2::trainingBytes, decoder::trainingBytes * 6 / 10);
}
// Two key heads, which each rank has in whole.
TEST(RanksTraining, IsThatOfOneProcessWithFewerHeadsOfKeysThanRanks) {
  expectSame<decoder_ranks4, 4>();
  EXPECT_LT(decoder_ranks4::trainingBytes, decoder::trainingBytes * 4 / 10);
}

TEST(RanksTraining, IsThatOfOneProcessWithPartsOfTheRows) {
  expectSame<decoder_rows2, 2>(sentBytes(2) + sentForRows(2));
  EXPECT_LT(decoder_rows2::arenaBytes, decoder_ranks2::arenaBytes);
}

/// Returns losses, norms and the other results of `train` with `count` ranks.
template <class Api, size_t count> std::vector<float> trainRanks(uint32_t seed) {
  ThreadRanks ranks(count);
  std::vector<float> got[count];
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    std::vector<float> norms;
    got[rank] = train<Api>(seed, norms, count > 1 ? &communicator : nullptr);
    got[rank].insert(got[rank].end(), norms.begin(), norms.begin() + 10);
  });
  for (const std::vector<float> &each : got)
    EXPECT_EQ(each, got[0]);
  return got[0];
}

// Sums in four fixed parts, two key heads that are shared by several query heads, norms that all heads share.
TEST(RanksTraining, IsTheSameBitsOfSumsInParts) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<float> one = trainRanks<decoder_strict1, 1>(seed);
  EXPECT_EQ((trainRanks<decoder_strict2, 2>(seed)), one);
  EXPECT_EQ((trainRanks<decoder_strict4, 4>(seed)), one);
  std::vector<float> norms, wanted = train<decoder>(seed, norms);
  wanted.insert(wanted.end(), norms.begin(), norms.begin() + 10);
  ASSERT_EQ(one.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(one[i], wanted[i], 1e-3 * std::abs(wanted[i]) + 1e-5) << i;
}

} // namespace
} // namespace kiln::test
