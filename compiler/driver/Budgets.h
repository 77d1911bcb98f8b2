// SPDX-License-Identifier: Apache-2.0
//
// The limits of code and arena sizes that a build may set.
#pragma once

#include "compiler/driver/Compile.h"

namespace kiln {

/// Returns a message that names the budget that the library exceeds, or an empty string. `textBytes` are those of the
/// archive.
std::string checkBudgets(const ModelInterface &model, const std::vector<Variant> &variants, uint64_t textBytes,
                         const CompileOptions &options);

} // namespace kiln
