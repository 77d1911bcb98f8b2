// SPDX-License-Identifier: Apache-2.0
// Ordered libraries of each level of x86-64, and with weights of fewer bits.
#include "ordered_texts.h"
#include "ordered_writer_int4.h"
#include "ordered_writer_v2.h"
#include "ordered_writer_v3.h"
#include "ordered_writer_v4.h"

namespace kiln::testing {
namespace {

TEST(Ordered, ReadsInParts2) { ordered::check(KILN_TEST_WRITER(ordered_writer_v2, ORDERED_WRITER_V2)); }
TEST(Ordered, ReadsInParts3) { ordered::check(KILN_TEST_WRITER(ordered_writer_v3, ORDERED_WRITER_V3)); }
TEST(Ordered, ReadsInParts4) { ordered::check(KILN_TEST_WRITER(ordered_writer_v4, ORDERED_WRITER_V4)); }
TEST(Ordered, ReadsInPartsWithWeightsInGroups) {
  ordered::check(KILN_TEST_WRITER(ordered_writer_int4, ORDERED_WRITER_INT4));
}

} // namespace
} // namespace kiln::testing
