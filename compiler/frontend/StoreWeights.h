// SPDX-License-Identifier: Apache-2.0
//
// Which weights are stored in fewer bits than they have (dsl/SPEC.md, Stored weights). Said by the build, decided by
// how a model reads them.
#pragma once

#include "kiln/element.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// How the weights of a model are stored: all that can be as `preset`, those whose names match a pattern as it says, of
/// several the last one. f32: as they are.
struct StorageChoices {
  struct Exception {
    std::string pattern; // each * stands for any characters
    ElementType element;
  };
  ElementType preset = ElementType::f32;
  std::vector<Exception> exceptions;

  bool isPlain() const { return preset == ElementType::f32 && exceptions.empty(); }
};

/// Reads "int8" or "int8 except lm_head.*=f16 *.mlp.*=f32". Nothing and an `error` in words for what is not so.
std::optional<StorageChoices> parseStorageChoices(llvm::StringRef text, std::string &error);

std::string toString(const StorageChoices &choices);

/// Gives each kiln.parameter of an imported module its storage. The preset skips what cannot be stored otherwise; an
/// exception that names such a weight, or none, fails with a diagnostic.
mlir::LogicalResult storeWeights(mlir::ModuleOp module, const StorageChoices &choices);

} // namespace kiln
