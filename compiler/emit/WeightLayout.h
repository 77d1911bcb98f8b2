// SPDX-License-Identifier: Apache-2.0
//
// Where each weight lies in the packed copy that bind_weights makes. A kiln.parameter asks for its sources joined in
// one tensor of some layout; every distinct request gets a 64-byte aligned range, its layers one after another. Stages
// with other roles have other copies.
#pragma once

#include "compiler/emit/Interface.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace kiln {

/// Byte offset of a packed tensor and the distance between the copies of a repeat's layers.
struct PackedRange {
  uint64_t offset = 0, stride = 0;
};

class WeightLayout {
public:
  /// Lays out every parameter of the module; fails with a diagnostic at a parameter that the packer cannot serve.
  static mlir::FailureOr<WeightLayout> compute(mlir::ModuleOp module, const ModelInterface &model);

  /// The range of a kiln.parameter.
  PackedRange of(mlir::Operation *parameter) const { return ranges.lookup(parameter); }
  /// One a weight of the model, in its order; of several stages those of each role, one behind another. What a role
  /// does without is there as others have it.
  const std::vector<WeightPlacement> &placements() const { return places; }
  /// What is computed of others, in the order of the packed copy.
  const std::vector<DerivedWeight> &derived() const { return derivedWeights; }
  /// Of the largest copy.
  uint64_t bytes() const;
  const std::vector<uint64_t> &bytesOfRoles() const { return totals; }

private:
  llvm::DenseMap<mlir::Operation *, PackedRange> ranges;
  std::vector<WeightPlacement> places;
  std::vector<DerivedWeight> derivedWeights;
  std::vector<uint64_t> totals;
};

} // namespace kiln
