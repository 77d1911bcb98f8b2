// SPDX-License-Identifier: Apache-2.0
// 4-bit weights: their kernels have instructions that are separate functions until they are inlined. The library's
// self-test compares with the results that the compiler evaluated.
#include "tiny_gpt.h"

#include <gtest/gtest.h>

namespace {

TEST(Stored, LibraryComputesWhatItWasMadeTo) {
  kiln_error_t error = {};
  EXPECT_EQ(tiny_gpt_selftest(nullptr, &error), KILN_OK) << error.message;
}

} // namespace
