// SPDX-License-Identifier: Apache-2.0
// Two models with code for GPUs and CPUs in one program, which share a GPU and its context: they agree with the CPU,
// alone and beside each other, also when one of them is gone.
#include "support.h"
#include "two_models.h"

#include <gtest/gtest.h>
#include <thread>

namespace kiln::testing {
namespace {

template <kiln_device_t device> Library<pair_t> pairOn() {
  auto library = KILN_TEST_LIBRARY(pair, PAIR_WEIGHTS);
  library.create = [](const kiln_allocator_t *allocator, pair_t **model, kiln_error_t *error) {
    const kiln_options_t options = {.allocator = allocator, .device = device};
    return pair_create_on(&options, model, error);
  };
  return library;
}

template <kiln_device_t device> Library<small_t> smallOn() {
  auto library = KILN_TEST_LIBRARY(small, SMALL_WEIGHTS);
  library.create = [](const kiln_allocator_t *allocator, small_t **model, kiln_error_t *error) {
    const kiln_options_t options = {.allocator = allocator, .device = device};
    return small_create_on(&options, model, error);
  };
  return library;
}

TEST(GpuModels, ShareAGpu) {
  Session<small_t> words(smallOn<KILN_CUDA>()), wordsOnCpu(smallOn<KILN_CPU>());
  Session<pair_t> pairOnCpu(pairOn<KILN_CPU>());
  const std::vector<float> expected = codes(pairOnCpu, 9), wanted = logits(wordsOnCpu, 12);
  const std::vector<float> first = logits(words, 12);
  EXPECT_LE(relativeError(first, wanted), 5e-6);
  {
    Session<pair_t> pair(pairOn<KILN_CUDA>());
    EXPECT_EQ(pair_device(pair.get()), KILN_CUDA);
    const std::vector<float> alone = codes(pair, 9);
    EXPECT_LE(relativeError(alone, expected), 5e-6);
    EXPECT_EQ(logits(words, 12), first);
    EXPECT_EQ(codes(pair, 9), alone);
  }
  EXPECT_EQ(logits(words, 12), first) << "the other model is gone";
}

TEST(GpuModels, RunInTwoThreads) {
  Session<small_t> words(smallOn<KILN_CUDA>());
  Session<pair_t> pair(pairOn<KILN_CUDA>());
  const std::vector<float> code = codes(pair, 9), first = logits(words, 12);
  std::thread other([&] {
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(codes(pair, 9), code);
  });
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(logits(words, 12), first);
  other.join();
}

} // namespace
} // namespace kiln::testing
