// SPDX-License-Identifier: Apache-2.0
//
// An expression is represented as a sum of terms factor * atom, where an atom is a dimension or an irreducible floordiv
// or mod. A division by c first extracts the terms whose factor is a multiple of c; the remainder is often within two
// adjacent multiples of c.
#include "compiler/dialect/lowering/SimplifyIndex.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kiln {
namespace {

struct Range {
  int64_t min, max;
};

struct Sum {
  llvm::MapVector<AffineExpr, int64_t> terms; // atom -> factor
  int64_t constant = 0;

  void add(AffineExpr atom, int64_t factor) {
    terms[atom] += factor;
    if (terms[atom] == 0)
      terms.erase(atom);
  }
};

class Simplifier {
public:
  Simplifier(llvm::ArrayRef<std::optional<int64_t>> extents, MLIRContext *context)
      : extents(extents), context(context) {}

  Sum toSum(AffineExpr expr) {
    Sum sum;
    accumulate(sum, expr, 1);
    return sum;
  }

  AffineExpr toExpr(const Sum &sum) {
    AffineExpr result;
    for (auto [atom, factor] : sum.terms)
      result = result ? result + atom * factor : atom * factor;
    if (!result)
      return getAffineConstantExpr(sum.constant, context);
    return result + sum.constant;
  }

private:
  void accumulate(Sum &sum, AffineExpr expr, int64_t factor) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      sum.constant += factor * constant.getValue();
      return;
    }
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (extents[dim.getPosition()] != 1)
        sum.add(dim, factor);
      return;
    }
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    auto rhs = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
    if (binary && expr.getKind() == AffineExprKind::Add) {
      accumulate(sum, binary.getLHS(), factor);
      accumulate(sum, binary.getRHS(), factor);
    } else if (rhs && expr.getKind() == AffineExprKind::Mul) {
      accumulate(sum, binary.getLHS(), factor * rhs.getValue());
    } else if (rhs && expr.getKind() == AffineExprKind::FloorDiv) {
      divide(sum, toSum(binary.getLHS()), rhs.getValue(), factor);
    } else if (rhs && expr.getKind() == AffineExprKind::Mod) {
      remainder(sum, toSum(binary.getLHS()), rhs.getValue(), factor);
    } else {
      sum.add(expr, factor);
    }
  }

  /// Extracts the multiples of `divisor` from `sum`; returns their quotient.
  Sum splitMultiples(Sum &sum, int64_t divisor) {
    Sum quotient, rest;
    for (auto [atom, factor] : sum.terms)
      (factor % divisor == 0 ? quotient : rest).add(atom, factor % divisor == 0 ? factor / divisor : factor);
    quotient.constant = llvm::divideFloorSigned(sum.constant, divisor);
    rest.constant = sum.constant - quotient.constant * divisor;
    sum = rest;
    return quotient;
  }

  /// Returns the quotient if it is the same for every value of `sum`.
  std::optional<int64_t> commonQuotient(const Sum &sum, int64_t divisor) {
    auto range = rangeOf(sum);
    if (!range)
      return std::nullopt;
    int64_t low = llvm::divideFloorSigned(range->min, divisor), high = llvm::divideFloorSigned(range->max, divisor);
    return low == high ? std::optional(low) : std::nullopt;
  }

  void divide(Sum &into, Sum sum, int64_t divisor, int64_t factor) {
    Sum quotient = splitMultiples(sum, divisor);
    for (auto [atom, atomFactor] : quotient.terms)
      into.add(atom, factor * atomFactor);
    into.constant += factor * quotient.constant;
    if (auto common = commonQuotient(sum, divisor))
      into.constant += factor * *common;
    else
      into.add(toExpr(sum).floorDiv(divisor), factor);
  }

  void remainder(Sum &into, Sum sum, int64_t divisor, int64_t factor) {
    splitMultiples(sum, divisor);
    auto common = commonQuotient(sum, divisor);
    if (!common) {
      into.add(toExpr(sum) % divisor, factor);
      return;
    }
    for (auto [atom, atomFactor] : sum.terms)
      into.add(atom, factor * atomFactor);
    into.constant += factor * (sum.constant - *common * divisor);
  }

  std::optional<Range> rangeOf(const Sum &sum) {
    Range range{sum.constant, sum.constant};
    for (auto [atom, factor] : sum.terms) {
      auto atomRange = rangeOfAtom(atom);
      if (!atomRange)
        return std::nullopt;
      range.min += factor * (factor > 0 ? atomRange->min : atomRange->max);
      range.max += factor * (factor > 0 ? atomRange->max : atomRange->min);
    }
    return range;
  }

  std::optional<Range> rangeOfAtom(AffineExpr atom) {
    if (auto dim = dyn_cast<AffineDimExpr>(atom)) {
      auto extent = extents[dim.getPosition()];
      return extent ? std::optional(Range{0, *extent - 1}) : std::nullopt;
    }
    auto binary = dyn_cast<AffineBinaryOpExpr>(atom);
    auto rhs = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
    if (!rhs)
      return std::nullopt;
    if (atom.getKind() == AffineExprKind::Mod)
      return Range{0, rhs.getValue() - 1};
    if (atom.getKind() != AffineExprKind::FloorDiv)
      return std::nullopt;
    auto inner = rangeOf(toSum(binary.getLHS()));
    if (!inner)
      return std::nullopt;
    return Range{llvm::divideFloorSigned(inner->min, rhs.getValue()),
                 llvm::divideFloorSigned(inner->max, rhs.getValue())};
  }

  llvm::ArrayRef<std::optional<int64_t>> extents;
  MLIRContext *context;
};

} // namespace

AffineExpr simplifyIndex(AffineExpr expr, llvm::ArrayRef<std::optional<int64_t>> extents) {
  Simplifier simplifier(extents, expr.getContext());
  return simplifier.toExpr(simplifier.toSum(expr));
}

} // namespace mlir::kiln
