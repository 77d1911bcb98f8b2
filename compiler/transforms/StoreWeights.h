// SPDX-License-Identifier: Apache-2.0
//
// Sets the storage formats of weights that are stored in fewer bits (dsl/SPEC.md, Stored weights). The spec and the
// build request formats, and the uses of a weight in the model limit them. Also selects the matrix products that
// quantise their activations to int8.
#pragma once

#include "kiln/storage.h"
#include "mlir/Pass/Pass.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// The storage formats that a build selects. A weight whose name matches a pattern has that pattern's format, of
/// several the last one. If the spec states none for a weight and it supports `defaultFormat`, it has that one. f32
/// means no conversion.
struct StorageChoices {
  struct Exception {
    std::string pattern; // each * matches any characters
    Storage storage;
  };
  Storage defaultFormat = stored<ElementType::f32>;
  std::vector<Exception> exceptions;
  /// Whether linear quantises rows to int8 for a weight of int8.
  bool quantizesRows = false;

  bool isPlain() const { return !defaultFormat.has_fewer_bits() && exceptions.empty(); }
};

/// Parses "int8" or "int8 except lm_head.*=f16 *.mlp.*=f32". Returns nothing and sets `error` to a message if the text
/// is invalid.
std::optional<StorageChoices> parseStorageChoices(llvm::StringRef text, std::string &error);

std::string toString(const StorageChoices &choices);

/// Parses the type of activations for weights of int8, "f32" or "int8". Returns whether rows are quantised, or nothing
/// and a message in `error` if the text is invalid.
std::optional<bool> parseActivations(llvm::StringRef text, std::string &error);

} // namespace kiln

namespace mlir::kiln {

/// kiln-store-weights, with choices that need no text.
std::unique_ptr<Pass> createStoreWeights(const ::kiln::StorageChoices &choices);

} // namespace mlir::kiln
