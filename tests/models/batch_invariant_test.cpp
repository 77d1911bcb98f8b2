// SPDX-License-Identifier: Apache-2.0
// Batch-invariant libraries for each level of x86-64, and with quantised weights.
#include "batch_invariant_texts.h"
#include "batch_invariant_writer_int4.h"
#include "batch_invariant_writer_v2.h"
#if __has_include("batch_invariant_writer_v3.h")
#include "batch_invariant_writer_v3.h"
#endif
#if __has_include("batch_invariant_writer_v4.h")
#include "batch_invariant_writer_v4.h"
#endif

namespace kiln::testing {
namespace {

TEST(BatchInvariant, ReadsInParts2) {
  ordered::check(KILN_TEST_WRITER(batch_invariant_writer_v2, BATCH_INVARIANT_WRITER_V2));
}
#ifdef BATCH_INVARIANT_WRITER_V3_WEIGHTS
TEST(BatchInvariant, ReadsInParts3) {
  ordered::check(KILN_TEST_WRITER(batch_invariant_writer_v3, BATCH_INVARIANT_WRITER_V3));
}
#endif
#ifdef BATCH_INVARIANT_WRITER_V4_WEIGHTS
TEST(BatchInvariant, ReadsInParts4) {
  ordered::check(KILN_TEST_WRITER(batch_invariant_writer_v4, BATCH_INVARIANT_WRITER_V4));
}
#endif
TEST(BatchInvariant, ReadsInPartsWithWeightsInGroups) {
  ordered::check(KILN_TEST_WRITER(batch_invariant_writer_int4, BATCH_INVARIANT_WRITER_INT4));
}

} // namespace
} // namespace kiln::testing
