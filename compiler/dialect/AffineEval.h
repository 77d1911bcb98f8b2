// SPDX-License-Identifier: Apache-2.0
//
// The one evaluation of affine expressions: over numbers, bounds, linear functions, or values of an IR. It is part of
// the dialect, the lowest library that evaluates extents; kernels, targets and tests use it, too.
#pragma once

#include <cstdint>
#include <type_traits>

#include "compiler/dialect/PartialIndex.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {

/// The values of an expression's dimensions and symbols: a base of the arithmetics of evaluateAffine().
template <typename T> struct AffineOperands {
  using Value = T;
  llvm::ArrayRef<T> dims, symbols;

  T dim(unsigned position) const { return dims[position]; }
  T symbol(unsigned position) const { return symbols[position]; }
};

/// Evaluates an expression by an arithmetic, which is a class with a type Value and with
///   constant(int64_t), dim(unsigned position), symbol(unsigned position),
///   add(Value, Value), multiply, floorDivide, ceilDivide and modulo,
/// each of which returns a Value. Operands are evaluated first, the left one before the right one. A partial index
/// (PartialIndex.h) has the value of its loop.
template <typename Arithmetic>
auto evaluateAffine(AffineExpr expr, Arithmetic &&arithmetic) -> typename std::remove_cvref_t<Arithmetic>::Value {
  expr = withoutPartial(expr);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arithmetic.constant(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return arithmetic.dim(dim.getPosition());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return arithmetic.symbol(symbol.getPosition());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto lhs = evaluateAffine(binary.getLHS(), arithmetic);
  auto rhs = evaluateAffine(binary.getRHS(), arithmetic);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return arithmetic.add(lhs, rhs);
  case AffineExprKind::Mul:
    return arithmetic.multiply(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return arithmetic.floorDivide(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return arithmetic.ceilDivide(lhs, rhs);
  default:
    return arithmetic.modulo(lhs, rhs);
  }
}

/// 64-bit integers. Divisors must be positive.
struct IntegerArithmetic : AffineOperands<int64_t> {
  int64_t constant(int64_t number) const { return number; }
  int64_t add(int64_t a, int64_t b) const { return a + b; }
  int64_t multiply(int64_t a, int64_t b) const { return a * b; }
  int64_t floorDivide(int64_t a, int64_t b) const { return llvm::divideFloorSigned(a, b); }
  int64_t ceilDivide(int64_t a, int64_t b) const { return llvm::divideCeilSigned(a, b); }
  int64_t modulo(int64_t a, int64_t b) const { return llvm::mod(a, b); }
};

/// Returns the value of an extent, or of another expression over symbols, for given values of the symbols.
inline int64_t evaluateExtent(AffineExpr extent, llvm::ArrayRef<int64_t> symbols) {
  return evaluateAffine(extent, IntegerArithmetic{{{}, symbols}});
}

} // namespace mlir::kiln
