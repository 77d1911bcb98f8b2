// SPDX-License-Identifier: Apache-2.0
//
// How the dialect reports a broken rule: `linear "h.{}.mlp.c_fc" requires input width 768, got 512`. The scope is the name that
// the frontend put into the location.
#pragma once

#include <optional>
#include <string>

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// The scope that a location names, or an empty string.
StringRef getScope(Location location);

class Check {
public:
  /// Without a location nothing is reported. The symbols of extents are named after the module around `values`.
  Check(std::optional<Location> location, StringRef mnemonic, ValueRange values);
  explicit Check(Operation *op);

  /// Reports `mnemonic "scope" requires rule` and fails.
  LogicalResult fail(const Twine &rule) const;

  std::string text(AffineExpr extent) const { return describeExtent(extent, symbols); }
  /// "[batch, 7]"
  std::string text(ArrayRef<AffineExpr> extents) const;
  std::string text(RankedTensorType type) const { return text(getExtents(type)); }

  /// Every extent is positive if fixed, and stated by an extents map if not.
  LogicalResult extents(TypeRange types) const;
  LogicalResult axis(int64_t axis, RankedTensorType type) const;
  LogicalResult minRank(StringRef operand, RankedTensorType type, int64_t rank) const;
  LogicalResult rank(StringRef operand, RankedTensorType type, int64_t rank) const;
  LogicalResult sameElement(ArrayRef<RankedTensorType> types) const;
  /// The shape of `lhs` and `rhs` broadcast together, as NumPy does.
  FailureOr<SmallVector<AffineExpr>> broadcast(ArrayRef<AffineExpr> lhs, ArrayRef<AffineExpr> rhs) const;

private:
  std::optional<Location> location;
  StringRef mnemonic;
  SmallVector<SymbolAttr> symbols;
};

} // namespace mlir::kiln
