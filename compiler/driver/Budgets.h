// SPDX-License-Identifier: Apache-2.0
//
// The limits of code and arena sizes that a build may set.
#pragma once

#include "compiler/driver/Compile.h"

namespace kiln {

/// Returns a message that names the exceeded budget, or an empty string.
std::string checkBudgets(const CompileReport &report, const CompileOptions &options);

} // namespace kiln
