// SPDX-License-Identifier: Apache-2.0
//
// Declarations that the files that write NAME.h share.
#pragma once

#include "compiler/library/Headers.h"

namespace kiln {

/// Returns the prototypes of the functions that do not depend on the model's entries.
std::string modelFunctions(const ModelInterface &model, const std::vector<Variant> &variants);

} // namespace kiln
