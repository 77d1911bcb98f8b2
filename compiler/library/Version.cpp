// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Version.h"

namespace kiln {

// Only this file uses the macros, so that a new version recompiles nothing else.
const char *versionText() { return KILN_VERSION; }

Version version() { return {KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH}; }

} // namespace kiln
