// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/AffineValue.h"

#include <stdexcept>

using namespace mlir;

namespace kiln::verify {

static std::int64_t elementOf(ArrayRef<std::int64_t> values, unsigned position) {
  if (position >= values.size())
    throw std::runtime_error("affine expression: value is missing; expected one for each dimension and symbol");
  return values[position];
}

std::int64_t valueOf(AffineExpr expr, ArrayRef<std::int64_t> dims, ArrayRef<std::int64_t> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return elementOf(symbols, symbol.getPosition());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return elementOf(dims, dim.getPosition());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  const std::int64_t a = valueOf(binary.getLHS(), dims, symbols), b = valueOf(binary.getRHS(), dims, symbols);
  if (expr.getKind() == AffineExprKind::Add)
    return a + b;
  if (expr.getKind() == AffineExprKind::Mul)
    return a * b;
  if (b <= 0 || a < 0)
    throw std::runtime_error("affine expression: negative dividend, or divisor below 1; expected neither");
  switch (expr.getKind()) {
  case AffineExprKind::Mod:
    return a % b;
  case AffineExprKind::FloorDiv:
    return a / b;
  default:
    return (a + b - 1) / b;
  }
}

} // namespace kiln::verify
