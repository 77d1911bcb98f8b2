// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Version.h"
#include "kiln/runtime.h"

#include <llvm/Config/llvm-config.h>

#define KILN_TEXT(value) KILN_TEXT_OF(value)
#define KILN_TEXT_OF(value) #value

namespace kiln {

// Only this file uses the macros, so that a new version recompiles nothing else.
const char *versionText() { return KILN_VERSION; }

const char *versionReport() {
  return "kiln " KILN_VERSION "\nbinary interface " KILN_TEXT(KILN_ABI_VERSION) "\nLLVM " LLVM_VERSION_STRING
                                                                                "\nHalide " KILN_HALIDE_VERSION;
}

Version version() { return {KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH}; }

} // namespace kiln
