// SPDX-License-Identifier: Apache-2.0
//
// Checks that a graph is well formed, so that the import can follow its indices.
#pragma once

#include <vector>

#include "kiln/graph.h"
#include "mlir/IR/Location.h"

namespace kiln {

/// Checks that every index refers to something, that scopes and regions nest, that names exist, and that element counts
/// are in range. The dialect's verifiers check the operands of ops. `symbols` gets the named extents in order of first
/// use.
mlir::LogicalResult checkGraph(const Graph &graph, mlir::MLIRContext *context, std::vector<Symbol> &symbols);

/// Returns the scope as a location. `fallback` names the model itself.
mlir::Location scopeLocation(const Graph &graph, int scope, llvm::StringRef fallback, mlir::MLIRContext *context);

} // namespace kiln
