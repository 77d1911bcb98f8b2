// SPDX-License-Identifier: Apache-2.0
//
// Libraries of batch_invariant_writer.cpp: logits and states of a text are bit-identical, whether it is read at once,
// in parts of any length or token by token, with any number of workers.
#pragma once

#include "session.h"
#include "support.h"
#include <algorithm>
#include <numeric>

namespace kiln::testing::ordered {

inline constexpr std::int64_t vocabulary = 67, classes = 3, context = 150;

/// The results of reading a text: rows of logits, of classes, and the bytes of the states.
struct Read {
  std::vector<float> logits, few;
  std::vector<unsigned char> states;
};

/// The functions and sizes of a library.
template <class Handle> struct Writer {
  using Prefill = kiln_status_t(const Handle *, const kiln_call_t *, std::int64_t, std::int64_t, const std::int32_t *,
                                float *, float *);
  using Decode = kiln_status_t(const Handle *, const kiln_call_t *, std::int64_t, const std::int32_t *, float *,
                               float *);
  using Forward = kiln_status_t(const Handle *, const kiln_call_t *, std::int64_t, const std::int32_t *, float *,
                                float *);
  Library<Handle> library;
  Prefill *prefill;
  Decode *decode;
  Forward *forward;
  std::size_t stateBytes, arenaBytes;
};

/// Reads the text in parts; a part of 0 is a single token by `decode`.
template <class Handle>
Read read(const Session<Handle> &session, const Writer<Handle> &writer, const std::vector<std::int32_t> &tokens,
          const std::vector<std::int64_t> &parts, std::uint32_t workers) {
  Conversation<Handle> conversation(session, workers, writer.stateBytes, writer.arenaBytes);
  Read all;
  std::int64_t done = 0;
  for (std::int64_t part : parts) {
    const std::int64_t count = std::max<std::int64_t>(part, 1);
    const Input<std::int32_t> next(std::vector(tokens.begin() + done, tokens.begin() + done + count));
    Output<float> logits(count * vocabulary), few(count * classes);
    done += count;
    if (part)
      conversation.run(writer.prefill, count, done, next, logits, few);
    else
      conversation.run(writer.decode, done, next, logits, few);
    all.logits.insert(all.logits.end(), logits.values().begin(), logits.values().end());
    all.few.insert(all.few.end(), few.values().begin(), few.values().end());
  }
  all.states = conversation.states();
  return all;
}

template <class Handle> void check(const Writer<Handle> &writer) {
  Handle *probe = nullptr;
  const kiln_status_t status = writer.library.create(nullptr, &probe, nullptr);
  writer.library.destroy(probe);
  if (status == KILN_UNSUPPORTED_CPU)
    GTEST_SKIP() << "not run: this CPU lacks the instruction set of " << writer.library.name;
  Session<Handle> session(writer.library);
  const std::vector<std::int32_t> tokens = counterTokens("ordered", context, vocabulary);
  const Read alone = read(session, writer, tokens, std::vector<std::int64_t>(context, 0), 1);
  for (const std::vector<std::int64_t> &parts : std::vector<std::vector<std::int64_t>>{
           {100, 50}, {1, 63, 0, 64, 0, 20}, {7, 13, 33, 0, 0, 95}, {31, 32, 33, 54}, {99, 2, 49}})
    for (std::uint32_t workers : {1u, 2u}) {
      SCOPED_TRACE(std::to_string(parts[0]) + " tokens first, " + std::to_string(workers) + " workers");
      ASSERT_EQ(std::accumulate(parts.begin(), parts.end(), std::count(parts.begin(), parts.end(), 0)), context);
      const Read some = read(session, writer, tokens, parts, workers);
      EXPECT_TRUE(some.logits == alone.logits);
      EXPECT_TRUE(some.few == alone.few);
      EXPECT_TRUE(some.states == alone.states);
    }
  for (std::int64_t count : {1, 2, 33, 100}) {
    SCOPED_TRACE(std::to_string(count) + " tokens at once");
    Output<float> logits(count * vocabulary), few(count * classes);
    session.run(writer.forward, count, Input(std::vector(tokens.begin(), tokens.begin() + count)), logits, few);
    EXPECT_TRUE(std::ranges::equal(logits.values(), std::span(alone.logits).first(count * vocabulary)));
    EXPECT_TRUE(std::ranges::equal(few.values(), std::span(alone.few).first(count * classes)));
  }
}

#define KILN_TEST_WRITER(name, NAME)                                                                                   \
  ordered::Writer<name##_t> {                                                                                          \
    KILN_TEST_LIBRARY(name, NAME##_WEIGHTS), name##_prefill, name##_decode, name##_forward, NAME##_STATE_BYTES,        \
        std::max(NAME##_PREFILL_ARENA_BYTES(3), NAME##_DECODE_ARENA_BYTES(3))                                          \
  }

} // namespace kiln::testing::ordered
