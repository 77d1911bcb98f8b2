// SPDX-License-Identifier: Apache-2.0
//
// Converts a trace to the kiln dialect: each entry becomes a function, each stack a kiln.repeat, and each node an op of
// the same name. Locations are the scopes of the trace, so that a diagnostic names the layer.
#pragma once

#include "compiler/transforms/StoreWeights.h"
#include "kiln/graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kiln {

/// How entries are split among the processes that call them together (kiln-shard).
struct RankChoices {
  int64_t ranks = 1;
  int64_t replicas = 1; // data-parallel replicas, each with its own inputs and `ranks` ranks
  /// The number of parts of sums over ranks, independent of the number of ranks; 0: one part per rank.
  int64_t reductionParts = 0;
  bool rows = false;         // sequence parallelism: between layers, each rank has some of the rows (kiln-shard-rows)
  int64_t stages = 1;        // pipeline stages, each with its share of the layers (kiln-cut-stages) and `ranks` ranks
  bool sharesStates = false; // whether the optimiser state is sharded among replicas (ZeRO-1)
  /// Whether sums of f16 and bf16 over ranks are computed in that type, as NCCL does; else in f32.
  bool sumsHalf = false;

  bool isSplit() const { return ranks > 1 || reductionParts > 0; }
};

/// Returns a verified module, or null after diagnostics: a graph need not come from the DSL. The context must be able
/// to load func and kiln. Weights have the storage formats that the spec and the build select. With several ranks, the
/// module is what each of them computes.
mlir::OwningOpRef<mlir::ModuleOp> importGraph(const Graph &graph, mlir::MLIRContext *context, llvm::StringRef modelName,
                                              const StorageChoices &weights = {}, const RankChoices &ranks = {});

} // namespace kiln
