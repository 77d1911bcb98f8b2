// SPDX-License-Identifier: Apache-2.0
// A batch-invariant library for another CPU.
#include "batch_invariant_texts.h"
#include "batch_invariant_writer.h"

namespace kiln::testing {
namespace {

TEST(BatchInvariant, ReadsInParts) { ordered::check(KILN_TEST_WRITER(batch_invariant_writer, BATCH_INVARIANT_WRITER)); }

} // namespace
} // namespace kiln::testing
