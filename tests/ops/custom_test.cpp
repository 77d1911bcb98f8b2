// SPDX-License-Identifier: Apache-2.0
// Functions of the program: what they compute is compared with the same in f64 over whole arrays, so every operand was
// read from the right memory and every result from where the function wrote it.
#include "ops.h"

#include <algorithm>
#include <cstring>

#include KILN_OPS_HEADER(ops_custom)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_custom, entry)
#define FUNCTION(name) KILN_OPS_ENTRY(ops_custom, custom_##name)

namespace {

constexpr std::int64_t width = 9;

/// Fills memory that the function may use, to show that it overlaps no tensor and has its size.
void *filled(void *workspace, std::size_t bytes) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(workspace) % KILN_ARENA_ALIGNMENT, 0u);
  return std::memset(workspace, 0xA5, bytes);
}

} // namespace

void FUNCTION(sorted)(std::int64_t rows, std::int64_t batch, const float *input, float *output, void *workspace) {
  auto *row = static_cast<float *>(filled(workspace, width * sizeof(float)));
  for (std::int64_t i = 0; i < rows * batch; ++i) {
    std::copy_n(input + i * width, width, row);
    std::sort(row, row + width);
    std::copy_n(row, width, output + i * width);
  }
}

void FUNCTION(mixed)(std::int64_t rows, std::int64_t batch, const float *x, const std::int32_t *indices,
                     const std::uint8_t *small, const std::int8_t *bytes, std::int32_t *counts, std::uint8_t *positive,
                     float *sums, std::int8_t *unread, void *workspace) {
  filled(workspace, static_cast<std::size_t>(8 * rows + 3));
  std::fill_n(unread, 5, std::int8_t{7});
  for (std::int64_t t = 0; t < rows; ++t) {
    counts[t] = indices[t] + bytes[t];
    for (std::int64_t b = 0; b < batch; ++b) {
      double sum = 0;
      for (std::int64_t i = (t * batch + b) * width; i < (t * batch + b + 1) * width; ++i) {
        counts[t] += small[i];
        positive[i] = x[i] > 0;
        sum += x[i];
      }
      sums[t * batch + b] = static_cast<float>(sum);
    }
  }
}

void FUNCTION(sources)(std::int64_t rows, const float *weight, const float *numbers, const float *twos,
                       const float *last, const float *first, const float *flat, const float *transposed,
                       const std::int32_t *positions, float *output) {
  for (std::int64_t c = 0; c < width; ++c) {
    double sum = weight[c] * numbers[c] + twos[c] + 3 * last[c] - first[c];
    for (std::int64_t t = 0; t < rows; ++t)
      sum += (flat[t * width + c] + 0.5 * transposed[c * rows + t]) * positions[t];
    output[c] = static_cast<float>(sum);
  }
}

void FUNCTION(step)(std::int64_t batch, const float *state, const float *here, float *next, float *difference) {
  for (std::int64_t i = 0; i < batch * width; ++i) {
    next[i] = state[i] * 0.5f + here[i];
    difference[i] = here[i] - state[i];
  }
}

void FUNCTION(blended)(std::int64_t rows, std::int64_t batch, const float *x, const float *gain, float *y) {
  for (std::int64_t i = 0; i < rows * batch * width; ++i)
    y[i] = x[i] * 0.5f + gain[i % width];
}

namespace kiln::testing {
namespace {

auto library() { return KILN_OPS_LIBRARY(ops_custom, OPS_CUSTOM); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_custom)> only(library());
  return only;
}

class Near : public Expected {
public:
  explicit Near(Array array) : Expected(std::move(array), sumTolerance) {}
};

Array sorted(const Array &x) {
  return alongAxis(x, -1, [](std::vector<double> &row) { std::sort(row.begin(), row.end()); });
}
Array row(const Array &x, std::int64_t t) {
  return reshaped(slice(x, 0, t, 1), Shape(x.shape.begin() + 1, x.shape.end()));
}
Array stack(std::vector<Array> steps) {
  for (Array &step : steps)
    step.shape.insert(step.shape.begin(), 1);
  return concat(steps, 0);
}
Array half(const Array &x) { return times(x, number(0.5)); }

TEST(Custom, BetweenInputsKernelsAndResults) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, width});
    Near direct(sorted(x)), between(half(sorted(plus(times(x, number(2)), number(1)))));
    runAndCompare(session(), ENTRY(sorted), e.rows, e.batch, Given(x), direct, between);
  }
}

TEST(Custom, ElementTypesAndSeveralResults) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, width}), indices = randomIntegers({e.rows}, -50, 50);
    Array counts = generate({e.rows}, [&](const Index &at) {
      const Array here = row(x, at[0]);
      return 2 * indices.at(at) +
             static_cast<double>(std::ranges::count_if(here.values, [](double value) { return value < 0.5; }));
    });
    ExpectedIntegers counted(counts);
    Near positive(map(x, [](double value) { return value > 0 ? value : 0; })), sums(sum(x, -1));
    runAndCompare(session(), ENTRY(mixed), e.rows, e.batch, Given(x), GivenIntegers(indices), counted, positive, sums);
  }
}

TEST(Custom, OperandsThatNoKernelWrites) {
  const Array weight = weightOf(library().weights, "weight");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, width});
    Array result = generate({width}, [&](const Index &c) {
      double total = weight.at(c) * static_cast<double>(c[0] + 1) + 2 + 3 * x.at({e.rows - 1, c[0]}) - x.at({0, c[0]});
      for (std::int64_t t = 0; t < e.rows; ++t)
        total += 1.5 * x.at({t, c[0]}) * static_cast<double>(t);
      return total;
    });
    Near within(result);
    runAndCompare(session(), ENTRY(sources), e.rows, Given(x), within);
  }
}

TEST(Custom, ResultsOfLoops) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, width}), a = random({e.batch, width}), b = random({e.batch, width});
    Given a0(a), b0(b);
    std::vector<Array> differences, nexts;
    for (std::int64_t t = 0; t < e.rows; ++t) {
      Array next = plus(half(a), row(x, t));
      differences.push_back(minus(row(x, t), a));
      nexts.push_back(next);
      a = b;
      b = next;
    }
    Array y = x;
    for (const char *gain : {"layers.0.gain", "layers.1.gain", "layers.2.gain"})
      y = plus(half(y), weightOf(library().weights, gain));
    Near lastA(a), lastB(b), allDifferences(stack(differences)), allNexts(stack(nexts)), ofLayers(y);
    runAndCompare(session(), ENTRY(looped), e.rows, e.batch, Given(x), a0, b0, lastA, lastB, allDifferences, allNexts,
                  ofLayers);
  }
}

TEST(Custom, EqualCallsAndRepeatedResults) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, e.batch, width}), y = sorted(x);
    Near first(y), second(y), both(plus(y, y));
    runAndCompare(session(), ENTRY(twice), e.rows, e.batch, Given(x), first, second, both);
  }
}

} // namespace
} // namespace kiln::testing
