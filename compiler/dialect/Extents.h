// SPDX-License-Identifier: Apache-2.0
//
// Extents of tensor types as affine expressions over symbols: constants for fixed extents, otherwise the results of the
// type's extents map. Extents that are equal as polynomials have one canonical form, so they compare by identity.
#pragma once

#include <optional>
#include <string>

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include "compiler/dialect/KilnDialect.h"
#include "kiln/dim.h"

namespace mlir::kiln {

/// Inclusive bounds of a number.
struct Interval {
  int64_t min = 0, max = 0;
  bool operator==(const Interval &) const = default;
};

/// Whether each extent of the type is fixed or stated by its extents map.
bool hasExtents(RankedTensorType type);

/// The canonical extents, one a dimension. The type must have them.
llvm::SmallVector<AffineExpr> getExtents(RankedTensorType type);

/// How many symbols the extents maps of the types have: the largest number.
unsigned getNumSymbols(TypeRange types);

/// The tensor type with these extents: fixed ones in the shape, an extents map if any other.
RankedTensorType getTensorType(ArrayRef<AffineExpr> extents, Type element, unsigned numSymbols);

/// Sorted sum of sorted products; an extent that is no polynomial (floordiv, mod) stays as it is.
AffineExpr canonicalExtent(AffineExpr extent);

/// The canonical product; 1 for no extents.
AffineExpr getProduct(ArrayRef<AffineExpr> extents, MLIRContext *context);

/// Bounds of an extent whose symbols have the given bounds; nothing if a symbol has none or a number does not fit 64
/// bits.
std::optional<Interval> getBounds(AffineExpr extent, ArrayRef<Interval> symbols);

/// Bounds of the symbols of the types in `op`: those of the enclosing kernel function, else those of the module.
llvm::SmallVector<Interval> getSymbolBounds(Operation *op);

/// The module's symbols; none if it has no such attribute, or in a kernel function, whose symbols are its own.
llvm::SmallVector<SymbolAttr> getSymbols(Operation *op);

/// The extent of a Dim over the module's symbols; null if a symbol is not one of them.
AffineExpr fromDim(const ::kiln::Dim &dim, ArrayRef<SymbolAttr> symbols, MLIRContext *context);

/// The Dim with this extent, if there is one: offset + factor * one or two symbols.
std::optional<::kiln::Dim> toDim(AffineExpr extent, ArrayRef<SymbolAttr> symbols);

/// Whether the extent is fixed and equal to `value`.
inline bool isConstant(AffineExpr extent, int64_t value) {
  auto constant = dyn_cast<AffineConstantExpr>(extent);
  return constant && constant.getValue() == value;
}

/// The extent for a message, as the DSL prints it: "2*batch*tokens 2..64"; with s0, s1 for symbols that are not known.
std::string describeExtent(AffineExpr extent, ArrayRef<SymbolAttr> symbols = {});

} // namespace mlir::kiln
