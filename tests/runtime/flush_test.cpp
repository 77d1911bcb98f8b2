// SPDX-License-Identifier: Apache-2.0
// Values written to states: every bf16, and f32 of every exponent, are unchanged, or 0 if they are below 2^-100.
#include "support.h"

#include <cmath>
#include <gtest/gtest.h>

#include "runtime/src/core/model.h"

namespace {

using namespace kiln_test;

/// Returns the float whose leading bits these are.
template <class Word> float valueOf(Word word) {
  const uint32_t bits = static_cast<uint32_t>(word) << (32 - 8 * sizeof word);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Word> void expectFlushed(const std::vector<Word> &values, void (*flush)(void *, uint64_t)) {
  std::vector<Word> flushed(values);
  flushed.insert(flushed.begin(), Word(1));
  flushed.push_back(Word(1));
  flush(flushed.data() + 1, values.size() * sizeof(Word));
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(flushed[1 + i], std::fabs(valueOf(values[i])) < 0x1p-100f ? 0 : values[i])
        << i << " of " << values.size();
  EXPECT_EQ(flushed.front(), Word(1));
  EXPECT_EQ(flushed.back(), Word(1));
}

TEST(Flush, EveryBf16) {
  std::vector<uint16_t> all(0x10000);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint16_t>(i);
  expectFlushed(all, kiln_flush_bf16);
}

TEST(Flush, EveryExponentOfF32) {
  std::vector<uint32_t> all;
  for (uint32_t first = 0; first < 0x200; ++first) // sign and exponent
    for (uint32_t fraction : {0u, 1u, 0x400000u, 0x7FFFFFu})
      all.push_back(first << 23 | fraction);
  for (size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{4}, size_t{17}, all.size()})
    expectFlushed(std::vector(all.end() - static_cast<std::ptrdiff_t>(count), all.end()), kiln_flush_f32);
}

} // namespace
