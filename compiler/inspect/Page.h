// SPDX-License-Identifier: Apache-2.0
//
// What a library holds, as one page that needs nothing else: page/ has its parts, which are built in.
#pragma once

#include "compiler/inspect/Inspection.h"

namespace kiln {

std::string printPage(const Inspection &inspection);

} // namespace kiln
