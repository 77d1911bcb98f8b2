// SPDX-License-Identifier: Apache-2.0
//
// The rules that many ops share.
#include "compiler/dialect/Check.h"

#include "mlir/IR/Diagnostics.h"

namespace mlir::kiln {

StringRef getScope(Location location) {
  StringRef scope;
  location->walk([&](Location part) {
    auto name = dyn_cast<NameLoc>(part);
    if (!name)
      return WalkResult::advance();
    scope = name.getName().getValue();
    return WalkResult::interrupt();
  });
  return scope;
}

Check::Check(std::optional<Location> location, StringRef mnemonic, ValueRange values)
    : location(location), mnemonic(mnemonic) {
  if (!values.empty())
    if (Region *region = values.front().getParentRegion(); region && region->getParentOp())
      symbols = getSymbols(region->getParentOp());
}

Check::Check(Operation *op) : location(op->getLoc()), mnemonic(op->getName().stripDialect()), symbols(getSymbols(op)) {}

LogicalResult Check::fail(const Twine &rule) const {
  if (!location)
    return failure();
  InFlightDiagnostic diagnostic = emitError(*location) << mnemonic;
  if (StringRef scope = getScope(*location); !scope.empty())
    diagnostic << " \"" << scope << '"';
  return diagnostic << " requires " << rule;
}

std::string Check::text(ArrayRef<AffineExpr> extents) const {
  std::string result = "[";
  for (AffineExpr extent : extents)
    result += (result.size() > 1 ? ", " : "") + text(extent);
  return result + "]";
}

LogicalResult Check::extents(TypeRange types) const {
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue;
    if (!hasExtents(tensor)) {
      std::string printed;
      llvm::raw_string_ostream(printed) << tensor;
      return fail("an extents map on a type with run-time extents, got " + printed);
    }
    for (int64_t extent : tensor.getShape())
      if (extent == 0)
        return fail("extents of at least 1, got " + text(tensor));
  }
  return success();
}

LogicalResult Check::axis(int64_t axis, RankedTensorType type) const {
  if (axis >= 0 && axis < type.getRank())
    return success();
  return fail("an axis of " + text(type) + ", got " + Twine(axis));
}

LogicalResult Check::minRank(StringRef operand, RankedTensorType type, int64_t rank) const {
  if (type.getRank() >= rank)
    return success();
  return fail(Twine(operand) + " of rank at least " + Twine(rank) + ", got " + text(type));
}

LogicalResult Check::rank(StringRef operand, RankedTensorType type, int64_t rank) const {
  if (type.getRank() == rank)
    return success();
  return fail(Twine(operand) + " of rank " + Twine(rank) + ", got " + text(type));
}

LogicalResult Check::sameElement(ArrayRef<RankedTensorType> types) const {
  for (RankedTensorType type : types)
    if (type.getElementType() != types.front().getElementType()) {
      std::string printed;
      llvm::raw_string_ostream(printed) << types.front().getElementType() << " and " << type.getElementType();
      return fail("operands of one element type, got " + printed);
    }
  return success();
}

FailureOr<SmallVector<AffineExpr>> Check::broadcast(ArrayRef<AffineExpr> lhs, ArrayRef<AffineExpr> rhs) const {
  if (lhs.size() < rhs.size())
    return broadcast(rhs, lhs);
  SmallVector<AffineExpr> result(lhs);
  for (size_t i = 0; i < rhs.size(); ++i) {
    AffineExpr &left = result[lhs.size() - rhs.size() + i];
    if (left == rhs[i] || isConstant(rhs[i], 1))
      continue;
    if (!isConstant(left, 1))
      return fail("shapes that broadcast, got " + text(lhs) + " and " + text(rhs));
    left = rhs[i];
  }
  return result;
}

} // namespace mlir::kiln
