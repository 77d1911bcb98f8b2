// SPDX-License-Identifier: Apache-2.0
// What a state gets: every number of 16 bits, and numbers of 32 of every exponent, as they are or 0 below 2^-100. What
// was in a state before is copied as it is.
#include "support.h"

#include <cmath>
#include <gtest/gtest.h>

#include "runtime/src/model.h"

namespace {

using namespace kiln_test;

/// The float of these bits, the first ones of it.
template <class Word> float valueOf(Word word) {
  const uint32_t bits = static_cast<uint32_t>(word) << (32 - 8 * sizeof word);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Word>
void expectFlushed(const std::vector<Word> &from, size_t fresh,
                   void (*store)(void *, const void *, uint64_t, uint64_t)) {
  std::vector<Word> to(from.size() + 1, 0x5A5A);
  store(to.data(), from.data(), from.size() * sizeof(Word), fresh * sizeof(Word));
  for (size_t i = 0; i < from.size(); ++i) {
    const bool isOld = i + fresh < from.size();
    ASSERT_EQ(to[i], !isOld && std::fabs(valueOf(from[i])) < 0x1p-100f ? 0 : from[i]) << i << " of " << from.size();
  }
  EXPECT_EQ(to.back(), Word(0x5A5A));
}

TEST(Flush, EveryBf16) {
  std::vector<uint16_t> all(0x10000);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint16_t>(i);
  for (size_t fresh : {all.size(), size_t{0}, all.size() / 2 + 3, 2 * all.size()})
    expectFlushed(all, fresh, kiln_store_bf16);
}

TEST(Flush, EveryExponentOfF32) {
  std::vector<uint32_t> all;
  for (uint32_t first = 0; first < 0x200; ++first) // sign and exponent
    for (uint32_t fraction : {0u, 1u, 0x400000u, 0x7FFFFFu})
      all.push_back(first << 23 | fraction);
  for (size_t count : {size_t{1}, size_t{3}, size_t{4}, size_t{17}, all.size()})
    for (size_t fresh : {size_t{0}, size_t{1}, count / 2, count, count + 5})
      expectFlushed(std::vector(all.end() - static_cast<std::ptrdiff_t>(count), all.end()), fresh, kiln_store_f32);
}

} // namespace
