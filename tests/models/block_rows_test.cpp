// SPDX-License-Identifier: Apache-2.0
// Weights in blocks on each CPU: products with the numbers that are stored, which the interpreter rounds, are compared
// with loops in f64.
#include "block_rows.h"
#include "compiler/interpreter/Storage.h"
#include "session.h"
#include "stored_forms.h"
#include <algorithm>
#include <iterator>

namespace kiln::testing {
namespace {

constexpr std::size_t inputs = 256, outputs = 51, width = 96;

/// Returns the numbers of a weight as they are stored.
std::vector<double> stored(const char *name, std::int64_t rows, std::int64_t columns, const interpreter::Storage &as) {
  const Floats given = weight(name, {rows, columns});
  std::vector<double> values(given.begin(), given.end());
  interpreter::roundToStored(values, {rows, columns}, as);
  return values;
}

/// A layer of the model: its name, and its weight's storage format.
struct Layer {
  const char *name;
  interpreter::Storage storage;

  std::vector<double> product(const Floats &x) const {
    const bool isTurned = storage.dim == 1; // [inputs, outputs]
    const std::string of = name;
    const std::vector<double> w = isTurned ? stored((of + ".weight").c_str(), inputs, outputs, storage)
                                           : stored((of + ".weight").c_str(), outputs, inputs, storage);
    const Floats bias = weight((of + ".bias").c_str(), {outputs});
    std::vector<double> y;
    for (std::size_t row = 0; row < x.size(); row += inputs)
      for (std::size_t n = 0; n < outputs; ++n) {
        y.push_back(bias[n]);
        for (std::size_t k = 0; k < inputs; ++k)
          y.back() += double{x[row + k]} * w[isTurned ? k * outputs + n : n * inputs + k];
      }
    return y;
  }
};

const Layer byte{"byte", {ElementType::i8, 0, 32}}, floats{"floats", {ElementType::f8e4m3, 1, 128}},
    small{"small", {ElementType::f4e2m1, 0, 16}}, four{"four", {ElementType::u4, 0, 32}},
    six{"six", {ElementType::i6, 1, 16}};

TEST(BlockRows, MeetTheNumbersThatAreStored) {
  Session session(KILN_TEST_LIBRARY(block_rows, BLOCK_ROWS_WEIGHTS));
  const std::size_t rows = 35;
  const Floats one = counterValues("one", inputs), x = counterValues("rows", rows * inputs);
  const std::vector<std::int32_t> tokens = counterTokens("tokens", static_cast<std::int64_t>(rows), 40);
  std::vector<double> looked;
  const std::vector<double> table = stored("table.weight", 40, width, {ElementType::i8, 0, 32});
  for (std::int32_t token : tokens)
    std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(token) * width, width, std::back_inserter(looked));
  Output<float> ofByte(outputs), ofFloats(outputs), ofSmall(outputs), ofFour(outputs), ofSix(outputs),
      manyByte(rows * outputs), manyFour(rows * outputs), manySix(rows * outputs), rowsOfTable(rows * width);
  session.run(block_rows_forward, static_cast<std::int64_t>(rows), Input(one), Input(x), Input(tokens), ofByte,
              ofFloats, ofSmall, ofFour, ofSix, manyByte, manyFour, manySix, rowsOfTable);
  const std::pair<Output<float> *, std::vector<double>> results[] = {
      {&ofByte, byte.product(one)}, {&ofFloats, floats.product(one)}, {&ofSmall, small.product(one)},
      {&ofFour, four.product(one)}, {&ofSix, six.product(one)},       {&manyByte, byte.product(x)},
      {&manyFour, four.product(x)}, {&manySix, six.product(x)},       {&rowsOfTable, looked}};
  for (std::size_t i = 0; i < std::size(results); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    const auto &[actual, expected] = results[i];
    const Floats values(actual->values().begin(), actual->values().end());
    ASSERT_EQ(values.size(), expected.size());
    EXPECT_LE(relativeError(values, expected), 4e-6);
  }
}

} // namespace
} // namespace kiln::testing
