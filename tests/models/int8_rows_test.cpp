// SPDX-License-Identifier: Apache-2.0
// A model with int8 activations, compiled separately for each instruction set: each library gives exactly the results
// of plain loops over integers and f32, so all libraries agree.
#include "int8_loops.h"
#include "int8_rows_v2.h"
#if __has_include("int8_rows_v3.h")
#include "int8_rows_v3.h"
#endif
#if __has_include("int8_rows_v4.h")
#include "int8_rows_v4.h"
#include "int8_rows_v4_vnni.h"
#endif

namespace kiln::testing {
namespace {

/// Returns the results of the levels above v2 that this build has libraries for; empty ones if this CPU lacks the
/// instructions.
std::vector<Results> resultsOfHigherLevels([[maybe_unused]] const Floats &x) {
  std::vector<Results> results;
#ifdef INT8_ROWS_V3_WEIGHTS
  results.push_back(run(KILN_TEST_LIBRARY(int8_rows_v3, INT8_ROWS_V3_WEIGHTS), x, int8_rows_v3_forward));
#endif
#ifdef INT8_ROWS_V4_WEIGHTS
  results.push_back(run(KILN_TEST_LIBRARY(int8_rows_v4, INT8_ROWS_V4_WEIGHTS), x, int8_rows_v4_forward));
  results.push_back(run(KILN_TEST_LIBRARY(int8_rows_v4_vnni, INT8_ROWS_V4_VNNI_WEIGHTS), x, int8_rows_v4_vnni_forward));
#endif
  return results;
}

TEST(Int8Rows, GiveTheSameBitsOnEachInstructionSet) {
  for (std::size_t rows : {1, 2, 7, 31, 32, 33, 100, 300}) {
    SCOPED_TRACE(rows);
    const Floats x = int8Input(rows);
    const Results expected = expectedOf(x);
    const Results v2 = run(KILN_TEST_LIBRARY(int8_rows_v2, INT8_ROWS_V2_WEIGHTS), x, int8_rows_v2_forward);
    EXPECT_EQ(v2, expected);
    for (const Results &other : resultsOfHigherLevels(x))
      if (!other[0].empty())
        EXPECT_EQ(other, expected);
  }
}

TEST(Int8Rows, WithoutNumbersAreNaN) {
  Floats x(3 * 77, 1);
  x[77 + 5] = std::numeric_limits<float>::quiet_NaN();
  x[2 * 77] = std::numeric_limits<float>::infinity();
  const Results y = run(KILN_TEST_LIBRARY(int8_rows_v2, INT8_ROWS_V2_WEIGHTS), x, int8_rows_v2_forward);
  for (std::size_t i = 0; i < y[0].size(); ++i)
    EXPECT_EQ(std::isnan(y[0][i]), i >= 51) << i;
  for (std::size_t i = 0; i < y[2].size(); ++i)
    EXPECT_EQ(std::isnan(y[2][i]), i >= 9) << i;
  for (std::size_t i = 0; i < y[3].size(); ++i)
    EXPECT_EQ(std::isnan(y[3][i]), i >= 51) << i;
}

} // namespace
} // namespace kiln::testing
