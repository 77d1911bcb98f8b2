// SPDX-License-Identifier: Apache-2.0
//
// The content of a library as one self-contained page. Its parts in page/ are embedded in the compiler.
#pragma once

#include "compiler/inspect/Inspection.h"

namespace kiln {

std::string printPage(const Inspection &inspection);

} // namespace kiln
