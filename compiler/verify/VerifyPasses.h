// SPDX-License-Identifier: Apache-2.0
//
// Checks the passes of the compiler on one graph, without a target's code: for fuzzers and reducers.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/transforms/StoreWeights.h"
#include "kiln/graph.h"
#include "targets/target.h"

namespace kiln {

struct VerifyPassesOptions {
  StorageChoices weights = {}; // as in LoweringOptions
  /// The most scalar operations of a session of calls; larger sessions run only with the smallest extents.
  double mostOperations = 2e7;
};

/// Imports the graph, and runs the pipeline with the layouts of the target. The interpreter of graphs, the imported
/// module and the module after each pass are evaluated with inputs and weights that follow from `seed`.
///
/// Returns an empty string if all results agree, up to their roundings. Otherwise returns a sentence:
///   kiln-form-kernels changed "logits" of forward: element 17 was 0.5, is 0.25 (tokens=3)
///   kiln-lower-kernels changed result 0 of linear_3 in forward: ...
///   kiln-form-kernels left what cannot be evaluated: ...
///   the import changed "logits" of forward: ...
///   kiln-form-kernels failed: ...        with its message
///   the import refused the graph: ...
std::string verifyPasses(const Graph &graph, const Target &target, std::uint64_t seed,
                         const VerifyPassesOptions &options = {});

} // namespace kiln
