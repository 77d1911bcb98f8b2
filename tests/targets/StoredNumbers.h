// SPDX-License-Identifier: Apache-2.0
//
// Numbers that a storage format represents exactly, for tests of kernels. A format is stated as in IR: "i4, group = 32,
// zero = true".
#pragma once

#include "Harness.h"

namespace kiln::testing {

/// Returns the group size of a format; 0 if it has no groups.
int64_t groupOf(const std::string &storage);
/// Returns the numbers along K that cannot be separated.
int64_t wholeOf(const std::string &storage);
/// Returns a matrix [n, k] of random numbers that the format represents exactly: short fractions of any sign and
/// magnitude, or integers, including the extreme ones, times a power of two for each output, group or block.
Tensor storedNumbers(const std::string &storage, int64_t n, int64_t k);

} // namespace kiln::testing
