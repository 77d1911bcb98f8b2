// SPDX-License-Identifier: Apache-2.0
//
// Which weights are stored in fewer bits than they have (dsl/SPEC.md, Stored weights). Said by the spec and by the
// build, decided by how a model reads them. And which products take rows of int8, too.
#pragma once

#include "kiln/graph.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// How a build stores the weights of a model: those whose names match a pattern as it says, of several the last one; of
/// which the spec states nothing, and that can be stored so, as `preset`. f32: as they are.
struct StorageChoices {
  struct Exception {
    std::string pattern; // each * stands for any characters
    Storage storage;
  };
  Storage preset = stored<ElementType::f32>;
  std::vector<Exception> exceptions;
  /// Whether linear takes rows of int8 for a weight of int8.
  bool quantizesRows = false;

  bool isPlain() const { return !preset.has_fewer_bits() && exceptions.empty(); }
};

/// Reads "int8" or "int8 except lm_head.*=f16 *.mlp.*=f32". Nothing and an `error` in words for what is not so.
std::optional<StorageChoices> parseStorageChoices(llvm::StringRef text, std::string &error);

std::string toString(const StorageChoices &choices);

/// Reads what activations are where weights are int8, "f32" or "int8": whether rows are quantised. Nothing and an
/// `error` in words for anything else.
std::optional<bool> parseActivations(llvm::StringRef text, std::string &error);

/// Gives each kiln.parameter of a graph's module its storage: the last exception's that matches, else the spec's, else
/// the preset. The preset skips what cannot be stored otherwise; a spec or an exception that names such a weight, or an
/// exception that names none, fails with a diagnostic.
mlir::LogicalResult storeWeights(mlir::ModuleOp module, const Graph &graph, const StorageChoices &choices);

/// Then quantises the rows that linear multiplies by weights of whole numbers; fails if there are none. One
/// quantisation serves all products of a value, once equal ops are one. Of rows that are split each rank quantises what
/// it has.
mlir::LogicalResult quantizeRows(mlir::ModuleOp module);

} // namespace kiln
