// SPDX-License-Identifier: Apache-2.0
// Batched entries give each sequence the same results, bit for bit, as calls for that sequence only, whatever the other
// sequences are; invalid sequences are refused.
#include "../seed.h"
#include "batches.h"
#include "session.h"
#include "support.h"

#include <array>
#include <memory>
#include <numeric>
#include <random>

namespace kiln::testing {
namespace {

constexpr std::int64_t vocabulary = 61, width = 48, mostRows = BATCHES_PREFILL_TOKENS_MAX,
                       mostContext = BATCHES_PREFILL_CONTEXT_MAX, mostSequences = BATCHES_PREFILL_BATCH_SEQUENCES_MAX;

Session<batches_t> &session() {
  static Session<batches_t> only(KILN_TEST_LIBRARY(batches, BATCHES_WEIGHTS));
  return only;
}

/// Memory where the model's memory is; host memory is poisoned and between guard pages.
struct Memory : Arena<batches_t> {
  explicit Memory(std::size_t bytes) : Arena(session().functions(), session().get(), bytes, Guard::back) {}
};

/// A sequence with its states and its number of tokens so far.
struct Sequence {
  Memory states{BATCHES_STATE_BYTES};
  std::int64_t context = 0;

  Sequence() { states.zero(BATCHES_STATE_BYTES); }
  std::vector<float> numbers() const {
    std::vector<float> copy(BATCHES_STATE_BYTES / sizeof(float));
    EXPECT_EQ(batches_copy_from_memory(session().get(), copy.data(), states.data(), BATCHES_STATE_BYTES, nullptr),
              KILN_OK);
    return copy;
  }
};

/// Compares bit for bit if kernels are batch-invariant.
void expectSame(const std::vector<float> &got, const std::vector<float> &expected) {
  if (session().isOnHost())
    EXPECT_EQ(got, expected);
  else
    EXPECT_LE(relativeError(got, expected), 1e-5);
}

/// A model on a device has one worker.
std::uint32_t workersOf(std::uint32_t wanted) { return session().isOnHost() ? wanted : 1; }

struct Given {
  std::vector<float> logits, hidden;
};

/// Calls the entry for this sequence only; the arena begins with the sequence's states.
Given alone(Sequence &sequence, const std::vector<std::int32_t> &tokens, bool isDecode) {
  const std::size_t bytes = isDecode ? BATCHES_DECODE_ARENA_BYTES(1) : BATCHES_PREFILL_ARENA_BYTES(1);
  Memory arena(bytes);
  arena.copyFrom(sequence.states, BATCHES_STATE_BYTES);
  kiln_error_t error;
  const kiln_call_t call{arena.data(), bytes, nullptr, &error};
  const auto rows = static_cast<std::int64_t>(tokens.size());
  Given given{std::vector<float>(vocabulary), std::vector<float>(rows * width)};
  const kiln_status_t status =
      isDecode ? batches_decode(session().get(), &call, sequence.context + rows, tokens.data(), given.logits.data())
               : batches_prefill(session().get(), &call, rows, sequence.context + rows, tokens.data(),
                                 given.logits.data(), given.hidden.data());
  EXPECT_EQ(status, KILN_OK) << error.message;
  sequence.states.copyFrom(arena, BATCHES_STATE_BYTES);
  sequence.context += rows;
  return given;
}

/// A call of a batched entry, with poisoned memory of exactly the required size.
class Batch {
public:
  void add(Sequence &sequence, const std::vector<std::int32_t> &next, bool isDecode) {
    const auto rows = static_cast<std::int64_t>(next.size());
    sequence.context += rows;
    extents.push_back(std::make_unique<std::array<std::int64_t, 2>>(
        isDecode ? std::array{sequence.context, std::int64_t{-1}} : std::array{rows, sequence.context}));
    sequences.push_back({sequence.states.data(), extents.back()->data()});
    tokens.insert(tokens.end(), next.begin(), next.end());
  }
  Given run(std::uint32_t workers, bool isDecode) {
    Input<std::int32_t> given(tokens);
    Output<float> logits(sequences.size() * vocabulary), hidden(tokens.size() * width);
    (logits.poison(Guard::back), hidden.poison(Guard::back));
    Memory arena(isDecode ? BATCHES_DECODE_BATCH_ARENA_BYTES(workers) : BATCHES_PREFILL_BATCH_ARENA_BYTES(workers));
    kiln_error_t error;
    const kiln_call_t call{arena.data(), arena.size(), session().executor(workers), &error};
    const kiln_status_t status =
        isDecode
            ? batches_decode_batch(session().get(), &call, sequences.size(), sequences.data(), given.place(Guard::back),
                                   logits.place(Guard::back))
            : batches_prefill_batch(session().get(), &call, sequences.size(), sequences.data(),
                                    given.place(Guard::back), logits.place(Guard::back), hidden.place(Guard::back));
    EXPECT_EQ(status, KILN_OK) << error.message;
    EXPECT_TRUE(arena.isIntact() && logits.isIntact(Guard::back) && (isDecode || hidden.isIntact(Guard::back)));
    return {{logits.values().begin(), logits.values().end()}, {hidden.values().begin(), hidden.values().end()}};
  }

private:
  std::vector<std::unique_ptr<std::array<std::int64_t, 2>>> extents;
  std::vector<kiln_sequence_t> sequences;
  std::vector<std::int32_t> tokens;
};

/// Continues several sequences by different numbers of tokens, in shuffled order, and compares batched with single
/// calls.
void goOn(std::vector<Sequence> &single, std::vector<Sequence> &batched, std::mt19937 &random, std::uint32_t workers,
          bool isDecode) {
  std::vector<std::size_t> order(single.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  order.resize(1 + random() % order.size());
  Batch batch;
  std::vector<Given> expected;
  std::vector<std::size_t> taken;
  std::int64_t left = mostRows;
  for (std::size_t number : order) {
    const std::int64_t room = std::min(left, mostContext - single[number].context);
    if (room < 1)
      continue;
    std::vector<std::int32_t> tokens(isDecode ? 1 : 1 + random() % std::min<std::int64_t>(room, 9));
    for (std::int32_t &token : tokens)
      token = static_cast<std::int32_t>(random() % vocabulary);
    left -= static_cast<std::int64_t>(tokens.size());
    expected.push_back(alone(single[number], tokens, isDecode));
    batch.add(batched[number], tokens, isDecode);
    taken.push_back(number);
  }
  if (taken.empty())
    return;
  Given all, given = batch.run(workers, isDecode);
  for (const Given &one : expected) {
    all.logits.insert(all.logits.end(), one.logits.begin(), one.logits.end());
    all.hidden.insert(all.hidden.end(), one.hidden.begin(), one.hidden.end());
  }
  expectSame(given.logits, all.logits);
  if (!isDecode)
    expectSame(given.hidden, all.hidden);
  for (std::size_t number : taken)
    expectSame(batched[number].numbers(), single[number].numbers());
}

TEST(Batch, SequencesGoOnAsEachAlone) {
  const unsigned seed = testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (std::uint32_t workers : {1u, 2u, 3u}) {
    if (workersOf(workers) != workers)
      break;
    std::mt19937 random(seed);
    std::vector<Sequence> single(mostSequences), batched(mostSequences);
    for (int round = 0; round < 12; ++round) {
      SCOPED_TRACE("round " + std::to_string(round) + ", " + std::to_string(workers) + " workers");
      goOn(single, batched, random, workers, round % 3 == 2);
    }
  }
}

// Attention over tokens without a KV cache: no sequence attends to another.
TEST(Batch, SequencesWithoutStatesAreApart) {
  const std::vector<std::int64_t> lengths{3, 1, 9, 2, 8, 1};
  const std::int64_t rows = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const auto tokens = counterTokens("tokens", rows, vocabulary);
  std::vector<float> expected;
  std::vector<kiln_sequence_t> sequences;
  Memory states(lengths.size() * BATCHES_STATE_BYTES);
  for (std::int64_t at = 0; const std::int64_t &length : lengths) {
    Output<float> memory(length * width);
    session().run(batches_encode, length, Input(std::vector(tokens.begin() + at, tokens.begin() + at + length)),
                  memory);
    expected.insert(expected.end(), memory.values().begin(), memory.values().end());
    sequences.push_back({static_cast<char *>(states.data()) + sequences.size() * BATCHES_STATE_BYTES, &length});
    at += length;
  }
  Memory arena(BATCHES_ENCODE_BATCH_ARENA_BYTES(workersOf(2)));
  const kiln_call_t call{arena.data(), arena.size(), session().executor(workersOf(2)), nullptr};
  std::vector<float> given(rows * width);
  ASSERT_EQ(
      batches_encode_batch(session().get(), &call, sequences.size(), sequences.data(), tokens.data(), given.data()),
      KILN_OK);
  expectSame(given, expected);
}

// A fixed number of rows per sequence, and operations over the rows of one sequence.
TEST(Batch, SequencesHaveTheirRows) {
  constexpr std::int64_t count = 5;
  std::vector<float> x(count * 2 * width);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(0.37f * static_cast<float>(i));
  std::vector<float> scores, weights, twice;
  std::vector<kiln_sequence_t> sequences;
  Memory states(count * BATCHES_STATE_BYTES);
  for (std::int64_t i = 0; i < count; ++i) {
    Output<float> one(2 * vocabulary), two(2 * width), four(4 * width);
    session().run(batches_pair, Input(std::vector(x.begin() + i * 2 * width, x.begin() + (i + 1) * 2 * width)), one,
                  two, four);
    scores.insert(scores.end(), one.values().begin(), one.values().end());
    weights.insert(weights.end(), two.values().begin(), two.values().end());
    twice.insert(twice.end(), four.values().begin(), four.values().end());
    sequences.push_back({static_cast<char *>(states.data()) + i * BATCHES_STATE_BYTES, nullptr});
  }
  Memory arena(BATCHES_PAIR_BATCH_ARENA_BYTES(1));
  const kiln_call_t call{arena.data(), arena.size(), nullptr, nullptr};
  std::vector<float> one(scores.size()), two(weights.size()), four(twice.size());
  ASSERT_EQ(batches_pair_batch(session().get(), &call, count, sequences.data(), x.data(), one.data(), two.data(),
                               four.data()),
            KILN_OK);
  expectSame(one, scores);
  expectSame(two, weights);
  EXPECT_EQ(four, twice);
}

/// A call of prefill_batch for three sequences of 4 tokens, with one error.
class Refused : public ::testing::Test {
protected:
  Refused() {
    for (std::size_t i = 0; i < 3; ++i)
      sequences[i] = {states[i].states.data(), extents[i].data()};
  }
  void expect(kiln_status_t status, const std::string &words) {
    const kiln_call_t call{arena.data(), arena.size(), nullptr, &error};
    EXPECT_EQ(batches_prefill_batch(session().get(), &call, count, given, tokens.data(), logits.data(), hidden.data()),
              status);
    EXPECT_EQ(std::string(error.message), words);
  }

  std::array<Sequence, 3> states;
  std::array<std::array<std::int64_t, 2>, 3> extents{{{4, 4}, {4, 4}, {4, 4}}};
  std::array<kiln_sequence_t, 3> sequences;
  const kiln_sequence_t *given = sequences.data();
  std::size_t count = 3;
  Memory arena{BATCHES_PREFILL_BATCH_ARENA_BYTES(1)};
  std::vector<std::int32_t> tokens = std::vector<std::int32_t>(64, 1);
  std::vector<float> logits = std::vector<float>(8 * vocabulary), hidden = std::vector<float>(64 * width);
  kiln_error_t error;
};

TEST_F(Refused, NotTheGoodOne) { expect(KILN_OK, ""); }
TEST_F(Refused, NoSequences) {
  given = nullptr;
  expect(KILN_NULL_ARGUMENT, "prefill_batch: null given; expected sequences");
}
TEST_F(Refused, TooFewOrMany) {
  count = 0;
  expect(KILN_EXTENT_OUT_OF_RANGE, "prefill_batch: sequences out of range; expected [1, 7], got 0");
  count = 8;
  expect(KILN_EXTENT_OUT_OF_RANGE, "prefill_batch: sequences out of range; expected [1, 7], got 8");
}
TEST_F(Refused, NoStates) {
  sequences[1].states = nullptr;
  expect(KILN_NULL_ARGUMENT, "prefill_batch: null given; expected states of sequence 1");
}
TEST_F(Refused, MisalignedStates) {
  sequences[2].states = static_cast<char *>(sequences[2].states) + 4;
  expect(KILN_ARENA_MISALIGNED, "prefill_batch: states misaligned; expected alignment 64, got 4 past it of sequence 2");
}
TEST_F(Refused, SharedStates) {
  sequences[2].states = static_cast<char *>(sequences[0].states) + 64;
  expect(KILN_INVALID_ARGUMENT, "prefill_batch: sequences share states; expected separate ones for 0 and 2");
}
TEST_F(Refused, NoExtents) {
  sequences[0].extents = nullptr;
  expect(KILN_NULL_ARGUMENT, "prefill_batch: null given; expected extents");
}
TEST_F(Refused, ExtentsOfASequence) {
  extents[1] = {0, 4};
  expect(KILN_EXTENT_OUT_OF_RANGE, "prefill_batch: tokens out of range; expected [1, 24], got 0");
  extents[1] = {4, 3};
  expect(KILN_EXTENT_OUT_OF_RANGE, "prefill_batch: context too small; expected at least tokens, which is 4, got 3");
}
TEST_F(Refused, TooManyRows) {
  extents[0] = extents[1] = {12, 12};
  expect(KILN_EXTENT_OUT_OF_RANGE, "prefill_batch: rows out of range; expected [1, 24], got 28");
}
TEST_F(Refused, TokensOutOfTheTable) {
  tokens[9] = vocabulary;
  expect(KILN_INDEX_OUT_OF_RANGE, "prefill_batch: \"tokens\" out of range; expected [0, 60], got 61 at element 9");
}

} // namespace
} // namespace kiln::testing
