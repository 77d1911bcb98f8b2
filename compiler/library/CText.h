// SPDX-License-Identifier: Apache-2.0
//
// Declarations that the files that write NAME.h share.
#pragma once

#include "compiler/library/Headers.h"
#include "compiler/library/Names.h"

namespace kiln {

/// Returns the prototypes of the functions that do not depend on the model's entries.
std::string modelFunctions(const ModelInterface &model, const std::vector<Variant> &variants);

/// Returns a shape over the parameters of a function: "[2 * tokens, 768]".
std::string shapeText(const std::vector<Dim> &shape, const ParameterNames &names);

} // namespace kiln
