// SPDX-License-Identifier: Apache-2.0
//
// The file NAME.pc, which tells pkg-config how to use a library.
#pragma once

#include "compiler/library/Interface.h"

namespace kiln {

/// Returns the pkg-config file, which says how to compile and link with the library.
std::string writePkgConfig(const ModelInterface &model, bool isShared = false);

} // namespace kiln
