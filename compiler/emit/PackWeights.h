// SPDX-License-Identifier: Apache-2.0
//
// A weight file in a library's own layout, without the library: what NAME_bind_packed maps (runtime/src/packed.c).
#pragma once

#include "compiler/emit/Interface.h"

#include "llvm/Support/Error.h"
#include <array>

namespace kiln {

/// kiln_variant_t::digest: of all that says what lies where in a variant's packed weights, and whose they are.
std::array<uint64_t, 4> packedDigest(const ModelInterface &model, const Variant &variant);

/// What to pack, as the command line says it.
struct Checkpoint {
  std::string path;         // a GGUF file, by its ending; else a safetensors file, or the index of several
  std::string quantization; // of that: "gptq", "gptq_v2" or "awq"; empty: none
  /// A file of what the run time calls renames, a line each: FROM TO, FROM TO HEADS for rotary heads, FROM for what is
  /// left out, FROM =0 for what is left out and must be zeros. Empty: names are the model's.
  std::string renames;
  std::vector<std::string> renameTexts; // FROM=TO each, before those of the file; FROM= for what is left out
};

/// What is wrong with a text FROM=TO, or nothing.
std::string checkRename(const std::string &text);

/// The weights of a checkpoint as a program on the variant's target would have them when they are bound. What is wrong
/// is told in the run time's words, here and below.
llvm::Expected<std::string> packedWeights(const ModelInterface &model, const Variant &variant,
                                          const Checkpoint &checkpoint);

/// The same as the packed file `path`.
llvm::Error packWeights(const ModelInterface &model, const Variant &variant, const Checkpoint &checkpoint,
                        const std::string &path);

/// How the tensors of a checkpoint differ from the weights of a model.
struct CheckpointDifferences {
  std::string text; // a line for each
  size_t count = 0, tensors = 0;
};
/// Looks at names, shapes and types of all tensors, and at no number. The error is a file that cannot be read.
llvm::Expected<CheckpointDifferences> compareCheckpoint(const ModelInterface &model, const Variant &variant,
                                                        const Checkpoint &checkpoint);

} // namespace kiln
