// SPDX-License-Identifier: Apache-2.0
// The functions of the run time that sort positions and add up rows by index, on long and adverse lines.
#include "support.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace {

using namespace kiln_test;

template <class T> bool precedes(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(b) ? !std::isnan(a) : a < b;
  else
    return a < b;
}

/// Sorts lines of [outer, extent, inner] and compares all places with those of a stable sort.
template <class T>
void expectSorted(const std::vector<T> &x, int64_t outer, int64_t extent, int64_t inner, int64_t count,
                  uint32_t element) {
  for (uint32_t isDescending : {0u, 1u}) {
    std::vector<int32_t> places(static_cast<size_t>(outer * count * inner), -1);
    kiln_worker_t worker = {};
    worker.workers = &worker;
    ASSERT_EQ(kiln_argsort(&worker, places.data(), x.data(), outer, extent, inner, count, element, isDescending), 0);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        auto at = [&](int32_t k) { return x[static_cast<size_t>((o * extent + k) * inner + i)]; };
        std::vector<int32_t> expected(static_cast<size_t>(extent));
        std::iota(expected.begin(), expected.end(), 0);
        std::stable_sort(expected.begin(), expected.end(), [&](int32_t a, int32_t b) {
          return isDescending ? precedes(at(b), at(a)) : precedes(at(a), at(b));
        });
        for (int64_t k = 0; k < count; ++k)
          ASSERT_EQ(places[static_cast<size_t>((o * count + k) * inner + i)], expected[static_cast<size_t>(k)])
              << k << " of " << count << " of " << extent;
      }
  }
}

/// Lines on which simple quicksorts are quadratic, and such with few different elements.
std::vector<std::vector<float>> adverseLines(int extent) {
  std::vector<std::vector<float>> lines;
  auto add = [&](const std::function<float(int)> &element) {
    auto &line = lines.emplace_back();
    for (int i = 0; i < extent; ++i)
      line.push_back(element(i));
  };
  uint32_t state = 12345;
  auto next = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  add([](int i) { return static_cast<float>(i); });
  add([](int i) { return static_cast<float>(-i); });
  add([](int) { return 1.0f; });
  add([&](int i) { return static_cast<float>(std::min(i, extent - i)); });
  add([&](int) { return static_cast<float>(next()); });
  add([&](int) { return static_cast<float>(next() % 3) - 1; });
  add([&](int i) { return i % 2 ? static_cast<float>(i) : static_cast<float>(extent - i); });
  add([&](int i) {
    const float special[] = {NAN, -NAN, 0.0f, -0.0f, INFINITY, -INFINITY, 1e-40f, -1e-40f, 3.4e38f, -3.4e38f};
    return i % 3 ? special[next() % 10] : static_cast<float>(next());
  });
  return lines;
}

TEST(Sums, SortsLinesOfAllLengths) {
  for (int extent : {1, 2, 3, 11, 12, 13, 14, 100, 1001, 20000})
    for (const std::vector<float> &line : adverseLines(extent))
      for (int64_t count : {int64_t(1), int64_t(2), int64_t(extent / 2 + 1), int64_t(extent)})
        if (count <= extent)
          expectSorted(line, 1, extent, 1, count, KILN_F32);
}

TEST(Sums, SortsAlongAnyAxis) {
  std::vector<float> x = adverseLines(3 * 50 * 7).back();
  expectSorted(x, 3, 50, 7, 50, KILN_F32);
  expectSorted(x, 3, 50, 7, 4, KILN_F32);
  std::vector<int32_t> n(x.size());
  for (size_t i = 0; i < n.size(); ++i)
    n[i] = i % 9 == 0 ? std::numeric_limits<int32_t>::min()
                      : (i % 7 == 0 ? std::numeric_limits<int32_t>::max() : static_cast<int32_t>(i * 2654435761u));
  expectSorted(n, 1, 50, 21, 50, KILN_I32);
  std::vector<int8_t> bytes(x.size());
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<int8_t>(i * 37);
  expectSorted(bytes, 21, 50, 1, 50, KILN_I8);
}

TEST(Sums, SortsHalfFloats) {
  // Infinity, the largest number, NaN, -0, 0, the smallest numbers, 1, -1, in each format.
  const std::vector<uint16_t> f16 = {0x7C00, 0x7BFF, 0x7E00, 0x8000, 0, 0x0001, 0x8001, 0x3C00, 0xBC00, 0xFC00, 0xFE00};
  const std::vector<uint16_t> bf16 = {0x7F80, 0x7F7F, 0x7FC0, 0x8000, 0,     0x0001,
                                      0x8001, 0x3F80, 0xBF80, 0xFF80, 0xFFC0};
  const std::vector<int32_t> ascending = {9, 8, 6, 3, 4, 5, 7, 1, 0, 2, 10};
  for (const auto &[x, element] : {std::pair(&f16, KILN_F16), std::pair(&bf16, KILN_BF16)}) {
    std::vector<int32_t> places(x->size());
    kiln_worker_t worker = {};
    worker.workers = &worker;
    const auto extent = static_cast<int64_t>(x->size());
    kiln_argsort(&worker, places.data(), x->data(), 1, extent, 1, extent, static_cast<uint32_t>(element), 0);
    EXPECT_EQ(places, ascending);
  }
}

TEST(Sums, AddsRowsInTheirOrderAndIgnoresOthers) {
  kiln_worker_t worker = {};
  worker.workers = &worker;
  const std::vector<int32_t> indices = {2, -1, 0, 2, 3, INT32_MAX, 2};
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, rows, table(6);
  for (int i = 0; i < 14; ++i)
    rows.push_back(i == 3 || i == 9 ? NAN : static_cast<float>(i));
  kiln_index_add(&worker, table.data(), x.data(), rows.data(), indices.data(), 3, 7, 2, KILN_F32);
  EXPECT_EQ(table, (std::vector<float>{1 + 4, 2 + 5, 3, 4, 5 + 0 + 6 + 12, 6 + 1 + 7 + 13}));
  // The first sum is rounded: another order would give 1.
  x = {1e8f}, rows = {1, -1e8f}, table = {0};
  const std::vector<int32_t> both = {0, 0};
  kiln_index_add(&worker, table.data(), x.data(), rows.data(), both.data(), 1, 2, 1, KILN_F32);
  EXPECT_EQ(table[0], 0);
  const std::vector<int32_t> n = {INT32_MAX, 5}, added = {1, 7};
  std::vector<int32_t> sums(2);
  kiln_index_add(&worker, sums.data(), n.data(), added.data(), both.data(), 2, 2, 1, KILN_I32);
  EXPECT_EQ(sums, (std::vector<int32_t>{INT32_MIN + 7, 5}));
}

} // namespace
