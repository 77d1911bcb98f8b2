// SPDX-License-Identifier: Apache-2.0
//
// Extents (dimension sizes) of tensor types as affine expressions over symbols: constants for static dimensions,
// otherwise the results of the type's extents map. Extents that are equal as polynomials have one canonical form, so
// they compare by identity.
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

/// Inclusive bounds of an integer.
struct Interval {
  int64_t min = 0, max = 0;
  bool operator==(const Interval &) const = default;
};

/// Whether each dimension of the type is static or given by its extents map.
bool hasExtents(RankedTensorType type);

/// Returns the canonical extents, one per dimension. The type must have them.
llvm::SmallVector<AffineExpr> getExtents(RankedTensorType type);

/// Returns the largest number of symbols in the extents maps of the types.
unsigned getNumSymbols(TypeRange types);

/// Returns the tensor type with these extents: static ones in the shape, and an extents map if any other.
RankedTensorType getTensorType(ArrayRef<AffineExpr> extents, Type element, unsigned numSymbols);

/// Returns the extent as a sorted sum of sorted products of symbols and of sums that are divided by a number (floordiv).
/// ceildiv becomes floordiv, multiples of the divisor are taken out, and a division of a division is one. Equal extents
/// of other forms, such as s0 and s0 floordiv 2 + (s0 + 1) floordiv 2, may differ. An extent with mod is unchanged.
AffineExpr canonicalExtent(AffineExpr extent);

/// Returns the canonical product; 1 for no extents.
AffineExpr getProduct(ArrayRef<AffineExpr> extents, MLIRContext *context);

/// Returns the bounds of an extent whose symbols have the given bounds; nullopt if a symbol has none or the result does
/// not fit 64 bits.
std::optional<Interval> getBounds(AffineExpr extent, ArrayRef<Interval> symbols);

/// Returns the bounds of the symbols used by types in `op`: those of the enclosing kernel function, else those of the
/// module.
llvm::SmallVector<Interval> getSymbolBounds(Operation *op);

/// Returns the module's symbols; empty if it has none, or inside a kernel function, which has its own symbols.
llvm::SmallVector<SymbolAttr> getSymbols(Operation *op);

/// Converts a Dim to an extent over the module's symbols; null if it uses a symbol that is not one of them.
AffineExpr fromDim(const ::kiln::Dim &dim, ArrayRef<SymbolAttr> symbols, MLIRContext *context);

/// Converts an extent to a Dim, if it has the form of one: at most two terms of one or two symbols.
std::optional<::kiln::Dim> toDim(AffineExpr extent, ArrayRef<SymbolAttr> symbols);

/// Whether the extent is static and equal to `value`.
inline bool isConstant(AffineExpr extent, int64_t value) {
  auto constant = dyn_cast<AffineConstantExpr>(extent);
  return constant && constant.getValue() == value;
}

/// Formats the extent for a message, as the DSL prints it: "2*batch*tokens 2..64"; unknown symbols are named s0, s1.
std::string describeExtent(AffineExpr extent, ArrayRef<SymbolAttr> symbols = {});

} // namespace mlir::kiln
