// SPDX-License-Identifier: Apache-2.0
//
// The functions that the program defines for a model (kiln::custom), as the headers declare them.
#pragma once

#include "compiler/library/Interface.h"
#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// Returns the symbol of a custom function, NAME_custom_<function>.
std::string customSymbol(const std::string &model, const std::string &function);

/// Adds the functions of the graph and their derivatives to the interface, sorted by name. Returns what is wrong if one
/// name has two signatures, otherwise an empty string.
std::string describeCustomFunctions(const Graph &graph, ModelInterface &model);

/// Records which functions the entries call.
void markCalledFunctions(mlir::ModuleOp module, ModelInterface &model);

/// Returns the prototypes of the functions that entries call.
std::string customPrototypes(const ModelInterface &model);

} // namespace kiln
