// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/AffineValue.h"

#include <stdexcept>

#include "compiler/dialect/AffineEval.h"

using namespace mlir;

namespace kiln::verify {
namespace {

struct CheckedArithmetic : mlir::kiln::IntegerArithmetic {
  std::int64_t dim(unsigned position) const { return elementOf(dims, position); }
  std::int64_t symbol(unsigned position) const { return elementOf(symbols, position); }
  std::int64_t floorDivide(std::int64_t a, std::int64_t b) const {
    return check(a, b), IntegerArithmetic::floorDivide(a, b);
  }
  std::int64_t ceilDivide(std::int64_t a, std::int64_t b) const {
    return check(a, b), IntegerArithmetic::ceilDivide(a, b);
  }
  std::int64_t modulo(std::int64_t a, std::int64_t b) const { return check(a, b), IntegerArithmetic::modulo(a, b); }

private:
  static std::int64_t elementOf(ArrayRef<std::int64_t> values, unsigned position) {
    if (position >= values.size())
      throw std::runtime_error("affine expression: value is missing; expected one for each dimension and symbol");
    return values[position];
  }
  static void check(std::int64_t a, std::int64_t b) {
    if (b <= 0 || a < 0)
      throw std::runtime_error("affine expression: negative dividend, or divisor below 1; expected neither");
  }
};

} // namespace

std::int64_t valueOf(AffineExpr expr, ArrayRef<std::int64_t> dims, ArrayRef<std::int64_t> symbols) {
  return mlir::kiln::evaluateAffine(expr, CheckedArithmetic{{{dims, symbols}}});
}

} // namespace kiln::verify
