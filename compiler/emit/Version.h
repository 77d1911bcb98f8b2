// SPDX-License-Identifier: Apache-2.0
//
// The version of Kiln: that of the project in CMakeLists.txt, where alone it is said.
#pragma once

namespace kiln {

/// "0.1.0".
const char *versionText();

struct Version {
  int major, minor, patch;
};
Version version();

} // namespace kiln
