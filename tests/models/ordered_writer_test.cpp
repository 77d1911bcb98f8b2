// SPDX-License-Identifier: Apache-2.0
// A batch-invariant library for another CPU.
#include "ordered_texts.h"
#include "ordered_writer.h"

namespace kiln::testing {
namespace {

TEST(Ordered, ReadsInParts) { ordered::check(KILN_TEST_WRITER(ordered_writer, ORDERED_WRITER)); }

} // namespace
} // namespace kiln::testing
