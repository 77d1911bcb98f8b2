// SPDX-License-Identifier: Apache-2.0
//
// The version of Kiln. Its only source is the project's version in CMakeLists.txt.
#pragma once

namespace kiln {

/// Returns text such as "0.1.0".
const char *versionText();

/// Returns what --version prints: a line each for Kiln, the binary interface of libraries, LLVM and Halide.
const char *versionReport();

struct Version {
  int major, minor, patch;
};
Version version();

} // namespace kiln
