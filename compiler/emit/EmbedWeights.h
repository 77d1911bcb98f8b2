// SPDX-License-Identifier: Apache-2.0
//
// Weights in the archive: what NAME_bind_embedded binds (runtime/src/embedded.c).
#pragma once

#include "compiler/emit/PackWeights.h"
#include "compiler/object/Object.h"

namespace kiln {

/// The member of the run time that refers to them.
inline constexpr llvm::StringRef embeddedWeightsMember = "embedded.c.o";

struct EmbeddedWeights {
  std::string object;
  std::vector<uint64_t> digests; // of each variant's, as kiln_selftest_t has them
};

/// An object with the packed weights of each variant, and the table of them. Variants that store them alike share them.
llvm::Expected<EmbeddedWeights> compileWeights(const ModelInterface &model, const std::vector<Variant> &variants,
                                               const Checkpoint &checkpoint, const CpuName &cpu);

} // namespace kiln
