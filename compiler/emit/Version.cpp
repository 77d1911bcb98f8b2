// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/Version.h"

namespace kiln {

// The macros are of this file only, so that another version compiles nothing else again.
const char *versionText() { return KILN_VERSION; }

Version version() { return {KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH}; }

} // namespace kiln
