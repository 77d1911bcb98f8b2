// SPDX-License-Identifier: Apache-2.0
// Quantised weights on each CPU: products with the dequantised values are compared with loops in f64. In a
// batch-invariant library, rows are bit-identical whatever the number of rows in the call.
#include "batch_invariant_rows.h"
#include "stored_rows.h"
#include "stored_rows_session.h"
#include <iterator>

namespace kiln::testing {
namespace {

constexpr std::size_t height = 7, width = 6, channels = 16, kernels = 24;

//===- What is stored ----------------------------------------------------===//

template <class Bits, class Number> Floats rounded(Floats w, Bits bits, Number number) {
  for (float &value : w)
    value = number(bits(value));
  return w;
}

Floats bytes(const Floats &w, std::size_t length) {
  const Quantized stored = quantize(w, length);
  Floats values;
  for (std::size_t i = 0; i < w.size(); ++i)
    values.push_back(static_cast<float>(stored.numbers[i]) * stored.scales[i / length]);
  return values;
}

Floats groups(const Floats &w, std::size_t size, bool hasZero) {
  Floats values;
  for (std::size_t first = 0; first < w.size(); first += size) {
    const Group group = quantizeGroup(std::span(w).subspan(first, size), hasZero);
    for (int number : group.numbers)
      values.push_back(static_cast<float>(number - group.zero) * group.scale);
  }
  return values;
}

//===- In f64 ------------------------------------------------------------===//

std::vector<double> product(const Floats &x, const Floats &w, const Floats &bias) {
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size(); row += depth)
    for (std::size_t n = 0; n < w.size() / depth; ++n) {
      y.push_back(bias.empty() ? 0 : bias[n]);
      for (std::size_t k = 0; k < depth; ++k)
        y.back() += double{x[row + k]} * w[n * depth + k];
    }
  return y;
}

/// Computes a convolution of 3 x 3 [kernels, channels, 3, 3], without padding.
std::vector<double> convolution(const Floats &image, const Floats &w, const Floats &bias) {
  std::vector<double> y;
  for (std::size_t at = 0; at < (height - 2) * (width - 2) * kernels; ++at) {
    const std::size_t n = at % kernels, column = at / kernels % (width - 2), row = at / kernels / (width - 2);
    y.push_back(bias[n]);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t tap = 0; tap < 9; ++tap)
        y.back() += double{image[((row + tap / 3) * width + column + tap % 3) * channels + c]} *
                    w[(n * channels + c) * 9 + tap];
  }
  return y;
}

std::vector<std::vector<double>> expectedOf(const StoredInputs &in) {
  const Floats four = groups(weight("four.weight", {51, 128}), 32, false), bias = weight("four.bias", {51}),
               zero = groups(transposed(weight("zero.weight", {128, 70}), 70), 64, true),
               table = bytes(weight("table.weight", {40, 33}), 33);
  std::vector<double> looked;
  for (std::int32_t token : in.tokens)
    std::copy_n(table.begin() + token * 33, 33, std::back_inserter(looked));
  return {product(in.x, rounded(weight("half.weight", {51, 128}), to_f16, from_f16), weight("half.bias", {51})),
          product(in.x, rounded(transposed(weight("brain.weight", {128, 130}), 130), to_bf16, from_bf16), {}),
          product(in.x, bytes(weight("byte.weight", {51, 128}), depth), weight("byte.bias", {51})),
          product(in.many, four, bias),
          product(in.many, zero, {}),
          product(in.one, four, bias),
          product(in.one, zero, {}),
          looked,
          convolution(in.image, bytes(weight("conv.weight", {24, 16, 3, 3}), 16 * 9), weight("conv.bias", {24}))};
}

void expectClose(const StoredResults &actual, const StoredInputs &in) {
  const auto expected = expectedOf(in);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    ASSERT_EQ(actual[i].size(), expected[i].size());
    EXPECT_LE(relativeError(actual[i], expected[i]), 4e-6);
  }
}

TEST(StoredRows, MeetTheNumbersThatAreStored) {
  Session session(KILN_TEST_LIBRARY(stored_rows, STORED_ROWS_WEIGHTS));
  for (std::size_t rows : {1, 40}) {
    SCOPED_TRACE(rows);
    const StoredInputs in(0, rows);
    expectClose(run(session, in, stored_rows_forward), in);
  }
}

/// Expects that `some` are rows of `all`, from row `first` on.
void expectRows(const Floats &some, const Floats &all, std::size_t first, std::size_t columns) {
  EXPECT_TRUE(std::ranges::equal(some, std::span(all).subspan(first * columns, some.size())));
}

TEST(StoredRows, AreTheSameAloneInABatchInvariantLibrary) {
  Session session(KILN_TEST_LIBRARY(batch_invariant_rows, BATCH_INVARIANT_ROWS_WEIGHTS));
  const StoredInputs in(0, 40);
  const StoredResults all = run(session, in, batch_invariant_rows_forward);
  expectClose(all, in);
  for (auto [first, count] : {std::pair<std::size_t, std::size_t>{0, 1}, {39, 1}, {3, 7}, {5, 34}}) {
    SCOPED_TRACE(std::to_string(count) + " rows");
    const StoredResults some = run(session, StoredInputs(first, count), batch_invariant_rows_forward);
    for (auto [output, columns] : {std::pair<std::size_t, std::size_t>{0, 51}, {1, 130}, {2, 51}, {7, 33}})
      expectRows(some[output], all[output], first, columns);
    expectRows(some[5], all[3], first, 51);
    expectRows(some[6], all[4], first, 70);
    EXPECT_EQ(some[8], all[8]);
  }
}

} // namespace
} // namespace kiln::testing
