// SPDX-License-Identifier: Apache-2.0
// Sliding states: long sessions of entries with different numbers of rows give the same results, bit for bit, as plain
// lists of rows; previous contents do not matter; a copy of the states continues like the session.
#include "../seed.h"
#include "streams.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

namespace kiln::testing {
namespace {

constexpr int past = 5, width = 3;
using Row = std::array<float, width>;
using Rows = std::vector<Row>;

constexpr std::size_t arenaBytes =
    std::max({STREAMS_LISTEN_ARENA_BYTES(1), STREAMS_HALVE_ARENA_BYTES(1), STREAMS_ONE_ARENA_BYTES(1),
              STREAMS_MANY_ARENA_BYTES(1), STREAMS_PEEK_ARENA_BYTES(1), STREAMS_REPLACE_ARENA_BYTES(1),
              STREAMS_ADD_ARENA_BYTES(1), STREAMS_DEEP_ARENA_BYTES(1), STREAMS_DEEP_BATCH_ARENA_BYTES(1)});

struct Arena {
  alignas(KILN_ARENA_ALIGNMENT) std::byte bytes[arenaBytes];
};

streams_t *model() {
  static streams_t *only = [] {
    streams_t *created = nullptr;
    kiln_error_t error{};
    EXPECT_EQ(streams_create(nullptr, &created, &error), KILN_OK) << error.message;
    return created;
  }();
  return only;
}

std::mt19937 &random() {
  static std::mt19937 only(testSeed());
  return only;
}

int draw(int least, int most) { return std::uniform_int_distribution(least, most)(random()); }

/// Some numbers are too small for states to keep, and some are signed zeros.
Rows drawRows(int count) {
  Rows rows(count);
  for (Row &row : rows)
    for (float &value : row)
      value = static_cast<float>(draw(-50, 50)) * (draw(0, 4) ? 1.0f : 0x1p-140f);
  return rows;
}

Rows halved(Rows rows) {
  for (Row &row : rows)
    for (float &value : row)
      value *= 0.5f;
  return rows;
}

/// A reference implementation of the entries.
struct Stream {
  Rows heard{past, Row{}};

  Rows window(const Rows &rows, bool isComputed) {
    Rows longer = heard;
    longer.insert(longer.end(), rows.begin(), rows.end());
    heard.assign(longer.end() - past, longer.end());
    for (std::size_t i = heard.size() - std::min(rows.size(), heard.size()); isComputed && i < heard.size(); ++i)
      flush(heard[i]);
    for (Row &row : longer)
      for (float &value : row)
        value *= 2;
    return longer;
  }
  static void flush(Row &row) {
    for (float &value : row)
      value = std::fabs(value) < 0x1p-100f ? 0 : value;
  }
};

void expectSame(const Rows &got, const Rows &expected) {
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(Row)), 0);
}

class Session {
public:
  Session() {
    std::memset(arena.bytes, 0xA5, sizeof arena.bytes);
    kiln_error_t error{};
    EXPECT_EQ(streams_begin_session(model(), arena.bytes, &error), KILN_OK) << error.message;
  }
  Session(const Session &other) : plain(other.plain) {
    std::memset(arena.bytes, 0x5A, sizeof arena.bytes);
    std::memcpy(arena.bytes, other.arena.bytes, STREAMS_STATE_BYTES);
  }

  /// Calls a random entry.
  void call() {
    const int which = draw(0, 9);
    if (which < 2)
      listen(draw(1, 9));
    else if (which < 4)
      halve(draw(0, 1) ? 1 : draw(1, 9));
    else if (which < 7)
      fixed(streams_one, 1);
    else if (which < 8)
      fixed(streams_many, 12);
    else if (which < 9)
      peek();
    else
      replace();
  }

private:
  kiln_call_t callOf(kiln_error_t &error) {
    kiln_call_t call{};
    call.arena = arena.bytes;
    call.arena_bytes = sizeof arena.bytes;
    call.error = &error;
    return call;
  }
  template <class Entry, class... Arguments> void run(Entry *entry, Arguments... arguments) {
    kiln_error_t error{};
    const kiln_call_t call = callOf(error);
    ASSERT_EQ(entry(model(), &call, arguments...), KILN_OK) << error.message;
    std::memset(arena.bytes + STREAMS_STATE_BYTES, draw(0, 255), sizeof arena.bytes - STREAMS_STATE_BYTES);
  }
  void listen(int count) {
    const Rows x = drawRows(count);
    Rows window(past + count);
    run(streams_listen, std::int64_t(count), x.front().data(), window.front().data());
    expectSame(window, plain.window(x, true));
  }
  void halve(int count) {
    const Rows x = drawRows(count);
    Rows window(past + count);
    std::vector<float> sums(count);
    run(streams_halve, std::int64_t(count), x.front().data(), window.front().data(), sums.data());
    expectSame(window, plain.window(halved(x), true));
  }
  void fixed(kiln_status_t (*entry)(const streams_t *, const kiln_call_t *, const float *, float *), int count) {
    const Rows x = drawRows(count);
    Rows window(past + count);
    run(entry, x.front().data(), window.front().data());
    expectSame(window, plain.window(halved(x), true));
  }
  void peek() {
    const float scale = 1;
    Rows rows(past);
    run(streams_peek, &scale, rows.front().data());
    expectSame(rows, plain.heard);
  }
  void replace() {
    const Rows x = drawRows(past);
    Rows before(past);
    run(streams_replace, x.front().data(), before.front().data());
    expectSame(before, plain.heard);
    plain.heard = halved(x);
    for (Row &row : plain.heard)
      Stream::flush(row);
  }

  Arena arena;
  Stream plain;
};

TEST(Streams, LongSessionsOfSeveralEntries) {
  for (int session = 0; session < 20; ++session) {
    Session one;
    for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i)
      one.call();
  }
}

TEST(Streams, ACopyGoesOn) {
  Session one;
  for (int i = 0; i < 60 && !::testing::Test::HasFailure(); ++i) {
    one.call();
    Session other(one);
    for (int k = 0; k < 7; ++k)
      other.call();
  }
}

// A state that is larger than what the entry-point code copies otherwise; sums of small integers are exact.
TEST(Streams, LargeState) {
  constexpr int large = 40, columns = 512;
  static_assert(STREAMS_STATE_BYTES > (2 * large + 9) * columns * sizeof(float), "the state slides");
  const auto arena = std::make_unique<Arena>();
  kiln_error_t error{};
  ASSERT_EQ(streams_begin_session(model(), arena->bytes, &error), KILN_OK) << error.message;
  kiln_call_t call{};
  call.arena = arena->bytes;
  call.arena_bytes = sizeof arena->bytes;
  call.error = &error;
  std::vector<float> all(large * columns); // all rows so far
  for (int i = 0; i < 100; ++i) {
    const int count = draw(0, 2) ? draw(1, 9) : 1;
    std::vector<float> x(count * columns), sum(columns);
    for (float &value : x)
      value = static_cast<float>(draw(-9, 9));
    ASSERT_EQ(streams_add(model(), &call, count, x.data(), sum.data()), KILN_OK) << error.message;
    std::vector<float> expected(columns);
    all.insert(all.end(), x.begin(), x.end());
    for (std::size_t k = all.size() - (large + count) * columns; k < all.size(); ++k)
      expected[k % columns] += all[k];
    ASSERT_EQ(sum, expected) << "call " << i << ", " << count << " rows";
  }
}

/// Each layer has a stream; sums of small integers are exact.
struct Layers {
  Rows heard[2] = {Rows(2), Rows(2)};

  Rows run(Rows x) {
    for (Rows &before : heard) {
      before.insert(before.end(), x.begin(), x.end());
      Row sum{};
      for (const Row &row : before)
        for (int i = 0; i < width; ++i)
          sum[i] += row[i];
      before.erase(before.begin(), before.end() - 2);
      for (Row &row : x)
        for (int i = 0; i < width; ++i)
          row[i] += sum[i];
    }
    return x;
  }
};

Rows drawIntegers(int count) {
  Rows rows(count);
  for (Row &row : rows)
    for (float &value : row)
      value = static_cast<float>(draw(-9, 9));
  return rows;
}

TEST(Streams, LayersOfSequences) {
  constexpr int sequences = 3;
  struct States {
    alignas(KILN_ARENA_ALIGNMENT) std::byte bytes[STREAMS_STATE_BYTES]{};
  };
  std::vector<States> states(sequences);
  Layers layers[sequences];
  Arena arena;
  kiln_error_t error{};
  kiln_call_t call{};
  call.arena = arena.bytes;
  call.arena_bytes = sizeof arena.bytes;
  call.error = &error;
  for (int i = 0; i < 100; ++i) {
    const int first = draw(0, 2), count = draw(1, sequences);
    std::int64_t extents[sequences];
    kiln_sequence_t of[sequences];
    Rows x, expected;
    for (int k = 0; k < count; ++k) {
      const int number = (first + k) % sequences;
      extents[k] = draw(1, 9 / count); // the sequences together have at most the rows of one
      of[k] = {states[number].bytes, &extents[k]};
      const Rows own = drawIntegers(static_cast<int>(extents[k])), y = layers[number].run(own);
      x.insert(x.end(), own.begin(), own.end());
      expected.insert(expected.end(), y.begin(), y.end());
    }
    Rows y(x.size());
    ASSERT_EQ(streams_deep_batch(model(), &call, count, of, x.front().data(), y.front().data()), KILN_OK)
        << error.message;
    expectSame(y, expected);
    if (::testing::Test::HasFailure())
      return;
    // A call for one of the sequences continues it too.
    const int number = draw(0, 2), rows = draw(1, 9);
    const Rows own = drawIntegers(rows);
    Rows alone(rows);
    std::memcpy(arena.bytes, states[number].bytes, sizeof states[number].bytes);
    ASSERT_EQ(streams_deep(model(), &call, rows, own.front().data(), alone.front().data()), KILN_OK) << error.message;
    std::memcpy(states[number].bytes, arena.bytes, sizeof states[number].bytes);
    expectSame(alone, layers[number].run(own));
  }
}

// If the position that a state stores is corrupted, a call stays within its memory: only its results are wrong.
TEST(Streams, StaysInItsMemory) {
  struct {
    Arena arena;
    std::byte after[64];
  } memory{};
  kiln_error_t error{};
  ASSERT_EQ(streams_begin_session(model(), memory.arena.bytes, &error), KILN_OK) << error.message;
  kiln_call_t call{};
  call.arena = memory.arena.bytes;
  call.arena_bytes = sizeof memory.arena.bytes;
  call.error = &error;
  const Rows x = drawRows(1);
  Rows window(past + 1);
  ASSERT_EQ(streams_one(model(), &call, x.front().data(), window.front().data()), KILN_OK) << error.message;
  std::memset(memory.arena.bytes + 64, 0xFF, STREAMS_STATE_BYTES - 64);
  EXPECT_EQ(streams_one(model(), &call, x.front().data(), window.front().data()), KILN_OK) << error.message;
  for (std::byte byte : memory.after)
    EXPECT_EQ(byte, std::byte{0});
}

} // namespace
} // namespace kiln::testing
