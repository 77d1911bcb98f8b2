// SPDX-License-Identifier: Apache-2.0
// Int8 activations on another CPU: the target that the environment variable KILN_TEST_LEVEL names must give the same
// bits as the levels of x86-64.
#include "byte_rows.h"
#include "int8_loops.h"
#include "stored_rows_session.h"
#include <cstdlib>

namespace kiln::testing {
namespace {

TEST(Int8Levels, TheBestThatTheCpuHasRuns) {
  const char *level = std::getenv("KILN_TEST_LEVEL");
  ASSERT_NE(level, nullptr);
  byte_rows_t *model = nullptr;
  kiln_error_t error{};
  ASSERT_EQ(byte_rows_create(nullptr, &model, &error), KILN_OK) << error.message;
  EXPECT_STREQ(byte_rows_target(model), level);
  byte_rows_destroy(model);
}

TEST(Int8Levels, GiveTheBitsOfIntegers) {
  Session session(KILN_TEST_LIBRARY(byte_rows, BYTE_ROWS_WEIGHTS));
  const Floats byte = weight("byte.weight", {51, 128}), bias = weight("byte.bias", {51}),
               four = weight("four.weight", {51, 128}), fourBias = weight("four.bias", {51}),
               zero = transposed(weight("zero.weight", {128, 70}), 70);
  for (std::size_t rows : {1, 40}) {
    SCOPED_TRACE(rows);
    const StoredInputs in(0, rows);
    const StoredResults y = run(session, in, byte_rows_forward);
    EXPECT_EQ(y[2], linear(in.x, byte, bias, depth));
    EXPECT_EQ(y[3], grouped(in.many, four, fourBias, depth, 32, false));
    EXPECT_EQ(y[4], grouped(in.many, zero, {}, depth, 64, true));
    EXPECT_EQ(y[5], grouped(in.one, four, fourBias, depth, 32, false));
    EXPECT_EQ(y[6], grouped(in.one, zero, {}, depth, 64, true));
  }
}

} // namespace
} // namespace kiln::testing
