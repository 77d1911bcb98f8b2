// SPDX-License-Identifier: Apache-2.0
//
// Weights in the archive, which NAME_bind_embedded binds (runtime/src/weights/embedded.c).
#pragma once

#include "compiler/object/Object.h"
#include "compiler/package/PackWeights.h"

namespace kiln {

/// The runtime member that refers to the embedded weights.
inline constexpr llvm::StringRef embeddedWeightsMember = "embedded.c.o";

struct EmbeddedWeights {
  std::string object;
  std::vector<uint64_t> digests; // one per variant, as in kiln_selftest_t
};

/// Returns an object with the packed weights of each variant and a table of them. Variants with the same layout share
/// the weights.
llvm::Expected<EmbeddedWeights> compileWeights(const ModelInterface &model, const std::vector<Variant> &variants,
                                               const Checkpoint &checkpoint, const CpuName &cpu);

} // namespace kiln
