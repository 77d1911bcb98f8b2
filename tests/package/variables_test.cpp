// SPDX-License-Identifier: Apache-2.0
// Weights that a program writes between calls: the model then equals one that was bound to these weights.
#include "session.h"
#include "small.h"
#include "support.h"

#include <algorithm>
#include <cstring>

namespace kiln::testing {
namespace {

Library<small_t> library() { return KILN_TEST_LIBRARY(small, SMALL_WEIGHTS); }

bool isVariable(const Weight &weight) { return weight.name.starts_with("layers.") || weight.name == "words.weight"; }
std::uint64_t rowsOf(const Weight &weight) { return weight.shape.empty() ? 1 : weight.shape[0]; }

std::vector<float> logits(Session<small_t> &session) {
  Output<float> result(2 * 5 * 11);
  session.run(small_forward, std::int64_t{2}, std::int64_t{5}, Input(counterTokens("tokens", 10, 11)),
              Input<std::int32_t>({5, 3}), result);
  return {result.values().begin(), result.values().end()};
}

// Concatenated projections, packed tiles, dense rows, and a table for lookups and for a matrix product.
TEST(Variables, AreAsIfTheyHadBeenBound) {
  std::vector<Weight> weights = counterWeights(library().weights);
  for (Weight &weight : weights)
    if (isVariable(weight))
      std::reverse(weight.values.begin(), weight.values.end());
  Session<small_t> written(library()), bound(library(), weights);
  const std::vector<float> before = logits(written), wanted = logits(bound);
  EXPECT_GT(relativeError(before, wanted), 0.01);
  kiln_error_t error{};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Weight &weight = weights[i];
    const std::uint64_t rows = rowsOf(weight), step = i % 2 == 0 ? rows : 1, columns = weight.values.size() / rows;
    for (std::uint64_t row = 0; row < rows && isVariable(weight); row += step)
      ASSERT_EQ(
          small_write_weight(written.get(), weight.name.c_str(), row, step, &weight.values[row * columns], &error),
          KILN_OK)
          << error.message;
  }
  const std::vector<float> after = logits(written);
  EXPECT_EQ(std::memcmp(after.data(), wanted.data(), after.size() * sizeof(float)), 0);
  for (const Weight &weight : weights) {
    std::vector<float> read(weight.values.size(), NAN);
    ASSERT_EQ(small_read_weight(written.get(), weight.name.c_str(), 0, rowsOf(weight), read.data(), &error), KILN_OK);
    EXPECT_EQ(read, weight.values) << weight.name;
  }
}

TEST(Variables, OtherWeightsCannotBeWritten) {
  Session<small_t> session(library());
  const std::vector<float> values(12 * 8, 1.0f), before = logits(session);
  kiln_error_t error{};
  EXPECT_EQ(small_write_weight(session.get(), "places.weight", 0, 12, values.data(), &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "rows of a weight: no access; expected a variable to write, got \"places.weight\"");
  EXPECT_EQ(logits(session), before);
}

} // namespace
} // namespace kiln::testing
