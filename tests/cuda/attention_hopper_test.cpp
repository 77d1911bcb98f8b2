// SPDX-License-Identifier: Apache-2.0
//
// Attention by wgmma, compared with the interpreter in f64 with its error bounds, which allow for one rounding of the
// softmax weights. There are few multiprocessors, so that a block processes several query tiles.
#include "AttentionMmaKernel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

constexpr uint32_t multiprocessors = 3;

/// Runs the TMA variant, and checks that it was launched.
void checkTma(DeviceKernel &kernel, const MmaCase &s, const std::string &text, int64_t queries, int64_t keys) {
  kernel.setTma(multiprocessors);
  const int before = kernel.tmaLaunches();
  check(kernel, s, text, queries, keys);
  EXPECT_GT(kernel.tmaLaunches(), before);
}

TEST(CudaAttentionHopper, Lengths) {
  for (const HalfType &type : types)
    for (bool isCausal : {false, true}) {
      MmaCase s{.type = type, .heads = 2, .keyHeads = 2, .bound = 300, .isCausal = isCausal};
      const std::string text = kernelOf(s);
      DeviceKernel kernel(text);
      ASSERT_TRUE(kernel.plan().tmaImage);
      for (int64_t t : {1, 64, 129, 257})
        checkTma(kernel, s, text, t, t);
    }
}

TEST(CudaAttentionHopper, WideHeads) {
  MmaCase s{.type = types[1], .heads = 2, .keyHeads = 2, .headDim = 128, .bound = 270, .isCausal = true};
  const std::string text = kernelOf(s);
  DeviceKernel kernel(text);
  for (int64_t t : {5, 140})
    checkTma(kernel, s, text, t, t);
}

TEST(CudaAttentionHopper, MasksAndLengths) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    MmaCase s{.type = types[kind % 2], .bound = 150};
    s.isCausal = kind & 1, s.hasMask = kind & 2, s.hasLengths = kind & 4;
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    for (int64_t t : {1, 147})
      checkTma(kernel, s, text, t, t);
  }
}

TEST(CudaAttentionHopper, Windows) {
  for (int window : {1, 70, 190}) {
    SCOPED_TRACE(window);
    MmaCase s{.type = types[window % 2], .bound = 300, .hasLengths = window == 70, .isCross = true};
    s.isCausal = true, s.window = window;
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    for (auto [queries, keys] : {std::pair(1, 260), {70, 290}, {200, 200}})
      checkTma(kernel, s, text, queries, keys);
  }
}

TEST(CudaAttentionHopper, OtherKeysAndGroupsOfHeads) {
  for (int keyHeads : {1, 2, 4}) {
    MmaCase s{.type = types[keyHeads % 2], .heads = 4, .keyHeads = keyHeads, .bound = 200};
    s.isCross = true, s.isCausal = keyHeads > 1;
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    for (auto [queries, keys] : {std::pair(70, 190), {100, 160}, {1, 129}})
      checkTma(kernel, s, text, queries, keys);
  }
}

// Where no key counts, the result is 0.
TEST(CudaAttentionHopper, NothingCounts) {
  MmaCase s{.heads = 1, .keyHeads = 1, .bound = 80, .hasLengths = true, .isCross = true};
  const std::string text = kernelOf(s);
  DeviceKernel kernel(text);
  kernel.setTma(multiprocessors);
  expectZerosWhereNothingCounts(kernel, s, text, 70, 75);
  EXPECT_EQ(kernel.tmaLaunches(), 1);
}

TEST(CudaAttentionHopper, NumbersThatAreNone) {
  MmaCase s{.type = types[1], .heads = 1, .keyHeads = 1, .bound = 160, .isCausal = true};
  const std::string text = kernelOf(s);
  DeviceKernel kernel(text);
  kernel.setTma(multiprocessors);
  auto rowOf = [&](const std::function<void(std::vector<Tensor> &)> &change, int64_t row) {
    std::vector<Tensor> inputs = inputsOf(s, text, 150, 150);
    change(inputs);
    const Tensor got = kernel.run({150, 150}, inputs)[0];
    std::vector<double> values;
    for (int64_t d = 0; d < s.headDim; ++d)
      values.push_back(got.at({0, row, 0, d}));
    return values;
  };
  for (double value : rowOf([](auto &inputs) { inputs[0].at({0, 149, 3}) = NAN; }, 149))
    EXPECT_TRUE(std::isnan(value));
  for (double value : rowOf([](auto &inputs) { inputs[1].at({0, 10, 3}) = NAN; }, 140))
    EXPECT_TRUE(std::isnan(value));
  // A masked key does not affect the rows before it, whatever its value.
  for (double value : rowOf([](auto &inputs) { inputs[1].at({0, 10, 3}) = NAN; }, 9))
    EXPECT_FALSE(std::isnan(value));
  const std::vector<double> row = rowOf([](auto &inputs) { inputs[2].at({0, 33, 5}) = NAN; }, 149);
  for (size_t d = 0; d < row.size(); ++d)
    EXPECT_EQ(std::isnan(row[d]), d == 5);
}

TEST(CudaAttentionHopper, EndsOfTheSearchSpace) {
  for (int headDim : {64, 128}) {
    MmaCase s{.heads = 1, .keyHeads = 1, .headDim = headDim, .bound = 140, .isCausal = true};
    const std::string text = kernelOf(s);
    for (const ScheduleConfig &config : endsOf(spaceOf(text), /*areTma=*/true)) {
      SCOPED_TRACE(toString(config));
      DeviceKernel kernel(text, &config);
      checkTma(kernel, s, text, 135, 135);
    }
  }
}

// Heads whose width is no multiple of 64, or few rows, have no TMA variant.
TEST(CudaAttentionHopper, WhichKernels) {
  EXPECT_FALSE(DeviceKernel(kernelOf({.headDim = 96})).plan().tmaImage);
  EXPECT_FALSE(DeviceKernel(kernelOf({.headDim = 64, .channels = 128})).plan().tmaImage);
  EXPECT_FALSE(DeviceKernel(kernelOf({.headDim = 64, .bound = 40})).plan().tmaImage);
  EXPECT_TRUE(DeviceKernel(kernelOf({.headDim = 64, .bound = 64})).plan().tmaImage);
}

TEST(CudaAttentionHopper, UnalignedAddresses) {
  MmaCase s{.headDim = 64, .bound = 70};
  const std::string text = kernelOf(s);
  DeviceKernel kernel(text);
  kernel.setTma(multiprocessors);
  kernel.setOffset(2);
  check(kernel, s, text, 70, 70);
  EXPECT_EQ(kernel.tmaLaunches(), 0);
}

} // namespace
} // namespace kiln::testing
