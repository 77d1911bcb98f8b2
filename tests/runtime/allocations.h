// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln_test {

/// Returns the number of allocations of this program so far, including those of libc. The program is linked with a
/// counting malloc.
long allocations();

} // namespace kiln_test
