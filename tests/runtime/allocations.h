// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln_test {

/// All allocations of this program so far, libc's included: linked with it is a malloc that counts.
long allocations();

} // namespace kiln_test
