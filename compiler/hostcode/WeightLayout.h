// SPDX-License-Identifier: Apache-2.0
//
// Computes the place of each weight in the packed copy that bind_weights makes. A kiln.parameter requests its sources
// concatenated in one tensor of some layout. Every distinct request gets a range that is aligned to 64 bytes, with its
// layers in sequence. Pipeline stages with different roles have different copies.
#pragma once

#include "compiler/library/Interface.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace kiln {

/// The byte offset of a packed tensor, and the distance between the copies of a repeat's layers.
struct PackedRange {
  uint64_t offset = 0, stride = 0;
};

class WeightLayout {
public:
  /// Lays out every parameter of the module. Fails with a diagnostic at a parameter that the packer does not support.
  static mlir::FailureOr<WeightLayout> compute(mlir::ModuleOp module, const ModelInterface &model);

  /// Returns the range of a kiln.parameter.
  PackedRange of(mlir::Operation *parameter) const { return ranges.lookup(parameter); }
  /// Returns one placement per weight of the model, in its order; with pipeline stages, those of all roles in sequence.
  /// A weight that a role lacks has the placement of another role.
  const std::vector<WeightPlacement> &placements() const { return places; }
  /// Returns the weights that are computed from others, in the order of the packed copy.
  const std::vector<DerivedWeight> &derived() const { return derivedWeights; }
  /// Returns the bytes of the largest copy.
  uint64_t bytes() const;
  const std::vector<uint64_t> &bytesOfRoles() const { return totals; }

private:
  llvm::DenseMap<mlir::Operation *, PackedRange> ranges;
  std::vector<WeightPlacement> places;
  std::vector<DerivedWeight> derivedWeights;
  std::vector<uint64_t> totals;
};

} // namespace kiln
