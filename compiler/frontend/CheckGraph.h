// SPDX-License-Identifier: Apache-2.0
//
// Whether a graph is well formed, so that the import may follow its numbers.
#pragma once

#include <vector>

#include "kiln/graph.h"
#include "mlir/IR/Location.h"

namespace kiln {

/// Every number refers to something, scopes and regions nest, names are there, and extents can be counted. What the ops
/// require of their operands is left to the dialect's verifiers. `symbols` gets the named extents in order of first
/// use.
mlir::LogicalResult checkGraph(const Graph &graph, mlir::MLIRContext *context, std::vector<Symbol> &symbols);

/// The scope as a location; `fallback` names the model itself.
mlir::Location scopeLocation(const Graph &graph, int scope, llvm::StringRef fallback, mlir::MLIRContext *context);

} // namespace kiln
