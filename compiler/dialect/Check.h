// SPDX-License-Identifier: Apache-2.0
//
// Reports violations of the rules of dsl/SPEC.md with the texts of the DSL, as in `h.{}.mlp.c_fc: linear: wrong input
// width; expected 768, got 512 [linear_c1]`. The scope is the name that the frontend stored in the location.
#pragma once

#include <optional>
#include <string>

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "kiln/rules.h"

namespace mlir::kiln {

namespace rules = ::kiln::rules;

/// Returns the scope that a location names, or an empty string.
StringRef getScope(Location location);

/// Returns the text of a labelled rule with the values that break it: "linear: wrong input width; expected 768, got 512
/// [linear_c1]".
std::string withValues(const char *rule, const Twine &got, const Twine &expected = "");

class Check {
public:
  /// Without a location nothing is reported. The symbols of extents are named after those of the module that contains
  /// `values`.
  Check(std::optional<Location> location, ValueRange values);
  explicit Check(Operation *op);

  /// Reports `scope: rule; expected ..., got ... [label]` and fails.
  LogicalResult fail(const char *rule, const Twine &got, const Twine &expected = "") const;

  std::string text(AffineExpr extent) const { return describeExtent(extent, symbols); }
  /// Formats "[batch 1..8, 7]".
  std::string text(ArrayRef<AffineExpr> extents) const;
  /// Formats "f32[batch 1..8, 7]".
  std::string text(RankedTensorType type) const;
  /// Formats the types of several tensors: "f32[7], f32[8]".
  std::string text(ArrayRef<RankedTensorType> types) const;

  /// Returns the bounds of the extent; a symbol without declared bounds is at least 1.
  std::optional<Interval> bounds(AffineExpr extent) const;
  /// Whether a >= b for every value of the symbols, or because a symbol was declared so. Symbols of a kernel are not
  /// declared, so a comparison that depends on them may hold there.
  bool atLeast(AffineExpr a, AffineExpr b) const;
  /// Returns nullopt if the extent depends on a symbol without declared bounds.
  std::optional<Interval> knownBounds(AffineExpr extent) const {
    return getBounds(canonicalExtent(extent), symbolBounds);
  }

  /// Checks that every extent is positive and, if it is dynamic, given by an extents map.
  LogicalResult extents(TypeRange types) const;
  /// For what no rule of dsl/SPEC.md covers: reports `scope: problem; expected ..., got ...` and fails. Without
  /// `expected`, the problem ends with what is expected.
  LogicalResult report(StringRef problem, const Twine &got, const Twine &expected = "") const;
  LogicalResult axis(const char *rule, int64_t axis, RankedTensorType type) const;
  LogicalResult sameElement(const char *rule, ArrayRef<RankedTensorType> types) const;
  /// Checks that the result of an operation of this name has its operand's element type.
  LogicalResult keepsElement(StringRef op, RankedTensorType operand, RankedTensorType result) const;
  /// Returns the shape of `lhs` and `rhs` broadcast together, as NumPy does.
  FailureOr<SmallVector<AffineExpr>> broadcast(const char *rule, ArrayRef<AffineExpr> lhs,
                                               ArrayRef<AffineExpr> rhs) const;

private:
  /// Reports `scope: text` and fails.
  LogicalResult emit(const Twine &text) const;
  std::optional<Location> location;
  SmallVector<SymbolAttr> symbols;
  SmallVector<Interval> symbolBounds;
  bool isInKernel = false;
};

} // namespace mlir::kiln
