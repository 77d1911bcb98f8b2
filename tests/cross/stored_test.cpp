// SPDX-License-Identifier: Apache-2.0
// Weights of four bits: kernels with instructions that are functions of their own until they are inlined, by the
// library's own test, which compares with what the compiler evaluated.
#include "tiny_gpt.h"

#include <gtest/gtest.h>

namespace {

TEST(Stored, LibraryComputesWhatItWasMadeTo) {
  kiln_error_t error = {};
  EXPECT_EQ(tiny_gpt_selftest(nullptr, &error), KILN_OK) << error.message;
}

} // namespace
