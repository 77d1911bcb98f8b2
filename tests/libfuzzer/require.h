// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

namespace kiln_fuzz {

/// Aborts, as a sanitizer does, if an invariant does not hold.
inline void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "check failed; expected %s\n", what);
  std::abort();
}

} // namespace kiln_fuzz
