// SPDX-License-Identifier: Apache-2.0
// States: a decoder that continues from call to call gives the results of one call over all tokens, sessions are
// independent, and invalid extents are refused.
#include "session.h"
#include "support.h"
#include "tiny_translator.hpp"

#include <numeric>

namespace kiln::testing {
namespace {

constexpr std::int64_t vocabulary = 37, most = TINY_TRANSLATOR_STEP_CONTEXT_MAX;

Session<tiny_translator_t> &session() {
  static Session<tiny_translator_t> only(KILN_TEST_LIBRARY(tiny_translator, TINY_TRANSLATOR_WEIGHTS));
  return only;
}

struct Talk : Conversation<tiny_translator_t> {
  explicit Talk(std::uint32_t workers)
      : Conversation(
            testing::session(), workers, TINY_TRANSLATOR_STATE_BYTES,
            std::max({TINY_TRANSLATOR_FORWARD_ARENA_BYTES(workers), TINY_TRANSLATOR_ENCODE_ARENA_BYTES(workers),
                      TINY_TRANSLATOR_STEP_ARENA_BYTES(workers), TINY_TRANSLATOR_COUNT_ARENA_BYTES(workers)})) {}

  void encode(const std::vector<std::int32_t> &source) {
    Output<float> memory(source.size() * 48);
    run(tiny_translator_encode, source.size(), Input(source), memory);
  }
  /// Returns the logits of the tokens, read in parts of the given lengths.
  std::vector<float> say(const std::vector<std::int32_t> &target, std::int64_t sourceTokens,
                         const std::vector<std::int64_t> &parts) {
    std::vector<float> all;
    std::int64_t done = 0;
    for (std::int64_t part : parts) {
      Input<std::int32_t> next(std::vector(target.begin() + done, target.begin() + done + part));
      Output<float> logits(part * vocabulary);
      done += part;
      run(tiny_translator_step, sourceTokens, part, done, next, logits);
      all.insert(all.end(), logits.values().begin(), logits.values().end());
    }
    return all;
  }
};

std::vector<float> atOnce(const std::vector<std::int32_t> &source, const std::vector<std::int32_t> &target) {
  Output<float> logits(target.size() * vocabulary);
  session().run(tiny_translator_forward, source.size(), target.size(), Input(source), Input(target), logits);
  return {logits.values().begin(), logits.values().end()};
}

TEST(State, GoesOnFromCallToCall) {
  struct Case {
    std::int64_t source;
    std::vector<std::int64_t> parts;
  };
  for (const Case &c : {Case{1, {1}}, Case{7, {1, 1, 1, 1}}, Case{24, {5, 1, 1, 9, 1, 2}}, Case{3, {most}},
                        Case{9, {17, 1, 22}}, Case{24, std::vector<std::int64_t>(most, 1)}}) {
    const std::int64_t tokens = std::accumulate(c.parts.begin(), c.parts.end(), std::int64_t{0});
    SCOPED_TRACE(std::to_string(c.source) + " source tokens, " + std::to_string(tokens) + " tokens in " +
                 std::to_string(c.parts.size()) + " parts");
    const auto source = counterTokens("source", c.source, vocabulary),
               target = counterTokens("target", tokens, vocabulary);
    std::vector<float> first;
    for (std::uint32_t workers : {1u, 2u, 3u}) {
      Talk talk(workers);
      talk.encode(source);
      std::vector<float> said = talk.say(target, c.source, c.parts);
      if (workers == 1)
        first = said;
      EXPECT_EQ(said, first) << workers << " workers";
    }
    EXPECT_LE(relativeError(first, atOnce(source, target)), 1e-5);
  }
}

// A copy of the states copies the session: it continues in another arena, and the two sessions are independent.
TEST(State, IsCopiedWithItsBytes) {
  const auto source = counterTokens("source", 11, vocabulary), target = counterTokens("target", 9, vocabulary);
  Talk one(1), other(2);
  one.encode(source);
  one.say(target, 11, {6});
  other.takeStates(one);
  auto goOn = [&](Talk &talk, std::int32_t token) {
    Output<float> logits(vocabulary);
    talk.run(tiny_translator_step, 11, 1, 7, Input<std::int32_t>({token}), logits);
    return std::vector(logits.values().begin(), logits.values().end());
  };
  const std::vector<float> a = goOn(one, 3), b = goOn(other, 4), again = goOn(other, 3);
  EXPECT_EQ(a, again);
  EXPECT_GT(relativeError(a, b), 1e-3);
}

// A context that starts again is not affected by previous contents of the cache.
TEST(State, ForgetsWhatIsBeforeTheContext) {
  const auto source = counterTokens("source", 5, vocabulary), target = counterTokens("target", 12, vocabulary);
  Talk used(1), fresh(1);
  used.encode(counterTokens("another", 24, vocabulary));
  used.say(counterTokens("something else", 30, vocabulary), 24, {30});
  for (Talk *talk : {&used, &fresh})
    talk->encode(source);
  EXPECT_EQ(used.say(target, 5, {7, 1, 4}), fresh.say(target, 5, {7, 1, 4}));
}

TEST(State, IsReplacedAfterItsReads) {
  Talk talk(2);
  std::vector<float> sum(15, 0);
  for (int round = 0; round < 3; ++round) {
    std::vector<float> x(15);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(counter_token("x", round * 15 + i, 100));
    const std::vector<float> before = sum;
    for (std::size_t i = 0; i < x.size(); ++i)
      sum[i] += x[i];
    Output<float> after(15), found(15);
    talk.run(tiny_translator_count, Input(x), after, found);
    EXPECT_EQ(std::vector(after.values().begin(), after.values().end()), sum);
    EXPECT_EQ(std::vector(found.values().begin(), found.values().end()), before);
  }
}

TEST(State, RefusesAContextShorterThanItsTokens) {
  Talk talk(1);
  Output<float> logits(4 * vocabulary);
  const Input<std::int32_t> tokens({1, 2, 3, 4});
  EXPECT_EQ(talk.call(tiny_translator_step, 5, 4, 3, tokens, logits), KILN_EXTENT_OUT_OF_RANGE);
  EXPECT_STREQ(talk.error.message, "step: context too small; expected at least tokens, which is 4, got 3");
  EXPECT_EQ(talk.call(tiny_translator_step, 5, 4, most + 1, tokens, logits), KILN_EXTENT_OUT_OF_RANGE);
  EXPECT_EQ(talk.call(tiny_translator_step, 5, 4, 4, tokens, logits), KILN_OK);
}

// Neither zeros nor states of calls: arbitrary bytes, also after zeros in place of the session mark.
TEST(State, RefusesAnArenaInWhichNothingWasBegun) {
  if (!session().isOnHost())
    GTEST_SKIP() << "on a GPU no mark is read";
  Talk talk(1);
  const Input<float> x(std::vector<float>(15, 2.0f));
  Output<float> after(15), found(15);
  for (auto [first, byte] : {std::pair(std::size_t{0}, 0xff), std::pair(std::size_t{0}, 1),
                             std::pair(std::size_t{64}, 0x7f), std::pair(TINY_TRANSLATOR_STATE_BYTES - 1, 1)}) {
    talk.fillStates(0, 0);
    talk.fillStates(first, byte);
    EXPECT_EQ(talk.call(tiny_translator_count, x, after, found), KILN_SESSION_NOT_BEGUN) << first;
    EXPECT_STREQ(talk.error.message, "count of model \"tiny_translator\": arena not begun; expected states of zeros or "
                                     "earlier calls at its start; begin_session makes zeros");
    // An entry without states needs no session.
    const auto source = counterTokens("source", 5, vocabulary), target = counterTokens("target", 3, vocabulary);
    Output<float> logits(target.size() * vocabulary);
    EXPECT_EQ(talk.call(tiny_translator_forward, source.size(), target.size(), Input(source), Input(target), logits),
              KILN_OK);
    ASSERT_EQ(tiny_translator_begin_session(session().get(), talk.data(), &talk.error), KILN_OK) << talk.error.message;
    ASSERT_EQ(talk.call(tiny_translator_count, x, after, found), KILN_OK) << talk.error.message;
    EXPECT_EQ(found.values()[0], 0);
    ASSERT_EQ(talk.call(tiny_translator_count, x, after, found), KILN_OK) << talk.error.message;
    EXPECT_EQ(found.values()[0], 2);
  }
  EXPECT_EQ(tiny_translator_begin_session(session().get(), nullptr, &talk.error), KILN_NULL_ARGUMENT);
}

// The class of the C++ header: arena, states and options; a session continues in another one.
TEST(State, BelongsToASession) {
  kiln_error_t error{};
  const kiln_call_t options{nullptr, 0, nullptr, &error};
  tiny_translator::Model model;
  const WeightImage image(testing::session().functions().weights);
  ASSERT_EQ(model.bind(std::span(reinterpret_cast<const std::byte *>(image.data()), image.size()), &error), KILN_OK)
      << error.message;
  tiny_translator::Session one, other, none;
  ASSERT_EQ(one.begin(model, options), KILN_OK) << error.message;
  ASSERT_EQ(other.begin(model, options), KILN_OK) << error.message;
  const std::vector<float> x(15, 3.0f);
  std::vector<float> sum(15), before(15);
  auto count = [&](tiny_translator::Session &session) {
    EXPECT_EQ(session.count(std::span<const float, 15>(x.data(), 15), sum.data(), before.data()), KILN_OK)
        << error.message;
    return before[7];
  };
  EXPECT_EQ(count(one), 0);
  EXPECT_EQ(count(one), 3);
  EXPECT_EQ(count(other), 0);
  ASSERT_EQ(other.fork(one), KILN_OK) << error.message;
  EXPECT_EQ(count(other), 6);
  EXPECT_EQ(count(other), 9);
  EXPECT_EQ(count(one), 6);
  ASSERT_EQ(one.restart(), KILN_OK) << error.message;
  EXPECT_EQ(count(one), 0);
  tiny_translator::Session moved = std::move(other);
  EXPECT_EQ(count(moved), 12);
  EXPECT_EQ(none.count(x.data(), sum.data(), before.data()), KILN_NULL_ARGUMENT);
  EXPECT_EQ(none.fork(one), KILN_NULL_ARGUMENT);
  EXPECT_EQ(moved.count(std::span<const float>(x).first(14), std::span(sum), std::span(before)),
            KILN_EXTENT_OUT_OF_RANGE)
      << error.message;
}

// The bytes per row: keys and values of 48 numbers, for the self-attention of three blocks and for the memory.
TEST(State, SaysItsBytes) {
  EXPECT_EQ(TINY_TRANSLATOR_STATE_BYTES_PER_ROW, 2u * 2 * 3 * 48 * sizeof(float));
  EXPECT_EQ(TINY_TRANSLATOR_STATE_BYTES % KILN_ARENA_ALIGNMENT, 0u);
  EXPECT_GE(TINY_TRANSLATOR_STATE_BYTES, 3u * 2 * (24 + 40) * 48 * sizeof(float) + 15 * sizeof(float));
}

} // namespace
} // namespace kiln::testing
