// SPDX-License-Identifier: Apache-2.0
//
// From a trace to the kiln dialect: each entry becomes a function, each stack a kiln.repeat, each node an op of the
// same name. Locations are the scopes of the trace, so that a diagnostic names the layer.
#pragma once

#include "compiler/frontend/StoreWeights.h"
#include "kiln/graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kiln {

/// How entries are split among the processes that call them together (kiln-shard).
struct RankChoices {
  int64_t ranks = 1;
  int64_t replicas = 1; // that train together, each with its own inputs; of any number of ranks each
  int64_t sumParts = 0; // of how many parts sums over ranks are, whatever the number of ranks; 0: of one each
  bool rows = false;    // between the layers each rank has a part of the rows (kiln-shard-rows)
  int64_t stages = 1;   // each with its share of the layers of stacks (kiln-cut-stages); of any number of ranks each
  bool sharesStates = false; // of what optimisers keep each replica has a part
  bool sumsShort = false;    // sums over ranks of f16 and bf16 are so, as NCCL has them; else f32, as all have

  bool isSplit() const { return ranks > 1 || sumParts > 0; }
};

/// A verified module, or null after diagnostics: a graph need not come from the DSL. The context has func and kiln
/// available. Weights are stored as the spec and the build say. Of several ranks it is what each of them computes.
mlir::OwningOpRef<mlir::ModuleOp> importGraph(const Graph &graph, mlir::MLIRContext *context, llvm::StringRef modelName,
                                              const StorageChoices &weights = {}, const RankChoices &ranks = {});

} // namespace kiln
