// SPDX-License-Identifier: Apache-2.0
//
// Writes a weight file in a library's own layout, without the library. NAME_bind_packed maps the file
// (runtime/src/weights/packed.c).
#pragma once

#include "compiler/library/Interface.h"

#include "llvm/Support/Error.h"
#include <array>

namespace kiln {

/// Computes kiln_variant_t::digest, the digest of everything that determines the layout of a variant's packed weights,
/// and of the model's weights.
std::array<uint64_t, 4> packedDigest(const ModelInterface &model, const Variant &variant);

/// The checkpoint to pack, as given on the command line.
struct Checkpoint {
  std::string path; // a GGUF file, by its suffix; else a safetensors file, or the index of several
  /// The format of a quantised safetensors file: "gptq", "gptq_v2", "awq", "fp8", "mxfp4" or "nvfp4"; else empty.
  std::string quantization;
  /// A file of renames (see the runtime), one per line: FROM TO, FROM TO HEADS for rotary heads, FROM for a tensor that
  /// is left out, FROM =0 for a tensor that is left out and must be zeros. Empty: the file has the model's names.
  std::string renames;
  std::vector<std::string> renameTexts; // FROM=TO each, applied before the file's; FROM= for a tensor that is left out
};

/// Returns what is wrong with a text FROM=TO, or an empty string.
std::string checkRename(const std::string &text);

/// Returns the weights of a checkpoint as a program on the variant's target would have them after binding. Error
/// messages here and below are the runtime's.
llvm::Expected<std::string> packedWeights(const ModelInterface &model, const Variant &variant,
                                          const Checkpoint &checkpoint);

/// Writes the same weights as the packed file `path`.
llvm::Error packWeights(const ModelInterface &model, const Variant &variant, const Checkpoint &checkpoint,
                        const std::string &path);

/// The differences between the tensors of a checkpoint and the weights of a model.
struct CheckpointDifferences {
  std::string text; // a line per difference
  size_t count = 0, tensors = 0;
};
/// Compares the names, shapes and types of all tensors, but reads no values. An error means that a file cannot be read.
llvm::Expected<CheckpointDifferences> compareCheckpoint(const ModelInterface &model, const Variant &variant,
                                                        const Checkpoint &checkpoint);

} // namespace kiln
