// SPDX-License-Identifier: Apache-2.0
// Batch-invariant libraries for each level of x86-64, and with quantised weights.
#include "ordered_texts.h"
#include "ordered_writer_int4.h"
#include "ordered_writer_v2.h"
#if __has_include("ordered_writer_v3.h")
#include "ordered_writer_v3.h"
#endif
#if __has_include("ordered_writer_v4.h")
#include "ordered_writer_v4.h"
#endif

namespace kiln::testing {
namespace {

TEST(Ordered, ReadsInParts2) { ordered::check(KILN_TEST_WRITER(ordered_writer_v2, ORDERED_WRITER_V2)); }
#ifdef ORDERED_WRITER_V3_WEIGHTS
TEST(Ordered, ReadsInParts3) { ordered::check(KILN_TEST_WRITER(ordered_writer_v3, ORDERED_WRITER_V3)); }
#endif
#ifdef ORDERED_WRITER_V4_WEIGHTS
TEST(Ordered, ReadsInParts4) { ordered::check(KILN_TEST_WRITER(ordered_writer_v4, ORDERED_WRITER_V4)); }
#endif
TEST(Ordered, ReadsInPartsWithWeightsInGroups) {
  ordered::check(KILN_TEST_WRITER(ordered_writer_int4, ORDERED_WRITER_INT4));
}

} // namespace
} // namespace kiln::testing
