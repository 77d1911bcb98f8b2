// SPDX-License-Identifier: Apache-2.0
// Two models in one program, together with Debian's Halide and a pipeline of it: their symbols do not conflict.
#include "pair.hpp"
#include "small.hpp"
#include "two_models.h"

#include <Halide.h>
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

std::vector<float> codes(std::int64_t rows) {
  Session<pair_t> session(KILN_TEST_LIBRARY(pair, PAIR_WEIGHTS));
  return codes(session, rows);
}

std::vector<float> logits(std::int64_t tokens) {
  Session<small_t> session(KILN_TEST_LIBRARY(small, SMALL_WEIGHTS));
  return logits(session, tokens);
}

int fibonacci(int n) {
  Halide::Func f;
  Halide::Var x;
  Halide::RDom r(2, n - 1);
  f(x) = 1;
  f(r) = f(r - 1) + f(r - 2);
  f.compute_root();
  Halide::Func g;
  g(x) = f(x) * 2;
  g.parallel(x);
  Halide::Buffer<int> result = g.realize({n + 1});
  return result(n);
}

TEST(SeveralModels, WithHalide) {
  const std::vector<float> code = codes(9), words = logits(12);
  EXPECT_EQ(fibonacci(20), 2 * 10946);
  EXPECT_EQ(codes(9), code);
  EXPECT_EQ(logits(12), words);
  EXPECT_EQ(fibonacci(21), 2 * 17711);
}

// The pools of two models are different functions of different archives, but any executor works with both.
TEST(SeveralModels, ShareAnExecutor) {
  kiln_pool_t *pool = nullptr;
  ASSERT_EQ(small_pool_create(2, &pool, nullptr), KILN_OK);
  pair::Model model;
  WeightImage image(KILN_TEST_LIBRARY(pair, PAIR_WEIGHTS).weights);
  kiln_error_t error{};
  ASSERT_EQ(model.bind({static_cast<const std::byte *>(image.data()), image.size()}, &error), KILN_OK) << error.message;
  std::vector<float> x(9 * 6), code(9 * 10);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i));
  GuardedMemory arena(PAIR_ENCODE_ARENA_BYTES(2), Guard::front);
  const kiln_call_t call{arena.data(), arena.size(), small_pool_executor(pool), &error};
  ASSERT_EQ(model.encode(call, std::span<const float>(x), std::span<float>(code)), KILN_OK) << error.message;
  EXPECT_EQ(code, codes(9));
  small_pool_destroy(pool);
}

// Views carry the dynamic dimensions; those of one call must agree.
TEST(CxxHeader, ChecksViews) {
  pair::Model model;
  WeightImage image(KILN_TEST_LIBRARY(pair, PAIR_WEIGHTS).weights);
  ASSERT_EQ(model.bind({static_cast<const std::byte *>(image.data()), image.size()}), KILN_OK);
  std::vector<float> x(5 * 6), code(5 * 10);
  GuardedMemory arena(PAIR_ENCODE_ARENA_BYTES(1), Guard::front);
  const kiln_call_t call{arena.data(), arena.size(), nullptr, nullptr};
  EXPECT_EQ(model.encode(call, std::span<const float>(x), std::span<float>(code)), KILN_OK);
  EXPECT_EQ(model.encode(call, std::span<const float>(x), std::span<float>(code).first(40)), KILN_EXTENT_OUT_OF_RANGE);
  EXPECT_EQ(model.encode(call, std::span<const float>(x).first(29), std::span<float>(code)), KILN_EXTENT_OUT_OF_RANGE);
  EXPECT_EQ(model.encode(call, {x.data(), 5}, {code.data(), 5}), KILN_OK);
  EXPECT_EQ(model.encode(call, {x.data(), 21}, {code.data(), 21}), KILN_EXTENT_OUT_OF_RANGE);
  pair::Model moved = std::move(model);
  EXPECT_EQ(model.get(), nullptr);
  EXPECT_EQ(moved.encode(call, std::span<const float>(x), std::span<float>(code)), KILN_OK);
}

} // namespace
} // namespace kiln::testing
