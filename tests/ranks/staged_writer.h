// SPDX-License-Identifier: Apache-2.0
//
// Compares the output of a pipeline-parallel model with that of the same model in one process.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "../seed.h"
#include "thread_ranks.h"
#include "writer.h"

namespace kiln::test {

inline std::vector<int32_t> drawTokens(size_t vocabulary) {
  std::mt19937 random(testing::testSeed());
  std::vector<int32_t> tokens(64);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(random() % vocabulary);
  return tokens;
}

inline bool isSame(const std::vector<float> &got, const std::vector<float> &wanted) {
  return got.size() == wanted.size() && std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)) == 0;
}

/// Expects that the last stage has the logits of one process, bit for bit, and that the other stages have none. The
/// size of the KV caches is that of the stage with the most layers.
template <class One, class Staged>
void expectSame(const std::string &weights, size_t vocabulary, uint32_t count, uint32_t layers) {
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
  EXPECT_EQ(Staged::stateBytes - markBytes, (One::stateBytes - markBytes) / layers * ((layers + count - 1) / count));
  EXPECT_LT(Staged::weightBytes, One::weightBytes);
}

} // namespace kiln::test
