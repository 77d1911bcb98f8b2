// SPDX-License-Identifier: Apache-2.0
// Two models with code for GPUs and CPUs in one program, which share a GPU and its context: their results equal those
// of the CPU, separately and interleaved, also after one of them is destroyed.
#include "command.h"
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

TEST(GpuModels, PassTheirSelfTestsOnBoth) {
  kiln_error_t error{};
  for (kiln_device_t device : {KILN_CUDA, KILN_CPU}) {
    const kiln_options_t options{.device = device};
    EXPECT_EQ(small_selftest(&options, &error), KILN_OK) << error.message;
    EXPECT_EQ(pair_selftest(&options, &error), KILN_OK) << error.message;
  }
}

// A traced call waits for each kernel, and is not captured.
TEST(GpuModels, TellOfTheirKernels) {
  Session<pair_t> pair(pairOn<KILN_CUDA>());
  kiln_error_t error{};
  ASSERT_EQ(pair_capture_entries(pair.get(), &error), KILN_OK) << error.message;
  std::vector<std::string> kernels;
  int ended = 0;
  struct Told {
    std::vector<std::string> &kernels;
    int &ended;
  } told{kernels, ended};
  const kiln_trace_t trace{
      &told, [](void *self, const kiln_event_t *event) { static_cast<Told *>(self)->kernels.push_back(event->kernel); },
      [](void *self, const kiln_event_t *) { ++static_cast<Told *>(self)->ended; }};
  const std::vector<float> x(9 * 6, 0.5f);
  std::vector<float> traced(9 * 10), plain(9 * 10);
  Arena<pair_t> arena(pair.functions(), pair.get(), PAIR_ENCODE_ARENA_BYTES(1), Guard::back);
  kiln_call_t call{.arena = arena.data(), .arena_bytes = arena.size(), .executor = nullptr, .error = &error};
  ASSERT_EQ(pair_encode(pair.get(), &call, 9, x.data(), plain.data()), KILN_OK) << error.message;
  call.trace = &trace;
  for (int i = 1; i <= 2; ++i) {
    ASSERT_EQ(pair_encode(pair.get(), &call, 9, x.data(), traced.data()), KILN_OK) << error.message;
    EXPECT_EQ(ended, i);
  }
  EXPECT_EQ(kernels, std::vector<std::string>(2, "pair_cuda_linear_tanh_0_up"));
  EXPECT_EQ(traced, plain);
}

TEST(GpuModels, TakePackedFiles) {
  Folder folder;
  const fs::path weights = folder.path / "w.safetensors", packed = folder.path / "small.cuda.packed";
  WeightImage image(smallOn<KILN_CUDA>().weights);
  std::ofstream(weights, std::ios::binary).write(image.characters().data(), static_cast<std::streamsize>(image.size()));
  const Result result = run(SMALL_GENERATOR " pack --target cuda " + weights.string() + " -o " + folder.path.string());
  ASSERT_EQ(result.status, 0) << result.text;
  Session<small_t> bound(smallOn<KILN_CUDA>()), onCpu(smallOn<KILN_CPU>());
  const std::vector<float> wanted = logits(bound, 12), row(8, 0.5f);
  kiln_error_t error{};
  const fs::path saved = folder.path / "saved";
  ASSERT_EQ(small_save_packed(bound.get(), saved.c_str(), &error), KILN_OK) << error.message;
  EXPECT_EQ(readFile(saved), readFile(packed));
  ASSERT_EQ(small_write_weight(bound.get(), "words.weight", 3, 1, row.data(), &error), KILN_OK) << error.message;
  EXPECT_NE(logits(bound, 12), wanted);
  ASSERT_EQ(small_bind_packed(bound.get(), packed.c_str(), &error), KILN_OK) << error.message;
  EXPECT_EQ(logits(bound, 12), wanted);
  EXPECT_EQ(small_bind_packed(onCpu.get(), packed.c_str(), &error), KILN_FILE_MISMATCH);
  EXPECT_EQ(std::string(error.message), "file \"" + packed.filename().string() +
                                            "\": packed file: built for another target; expected " +
                                            std::string(small_target(onCpu.get())) + ", got cuda");
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
