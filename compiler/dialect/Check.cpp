// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics, and the rules that many ops share.
#include "compiler/dialect/Check.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

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

std::string withValues(const char *rule, const Twine &got, const Twine &expected) {
  const char *label = rules::label_of(rule);
  const bool isExpectationGiven = !expected.isTriviallyEmpty();
  std::string text(rule, label);
  if (isExpectationGiven)
    text += ("; expected " + expected).str();
  text += isExpectationGiven || rules::states_expected(rule) ? ", got " : "; got ";
  return (text + got + label).str();
}

Check::Check(std::optional<Location> location, ValueRange values) : location(location) {
  if (!values.empty())
    if (Region *region = values.front().getParentRegion(); region && region->getParentOp()) {
      symbols = getSymbols(region->getParentOp());
      symbolBounds = getSymbolBounds(region->getParentOp());
      isInKernel = symbols.empty() && !symbolBounds.empty();
    }
}

Check::Check(Operation *op)
    : location(op->getLoc()), symbols(getSymbols(op)), symbolBounds(getSymbolBounds(op)),
      isInKernel(symbols.empty() && !symbolBounds.empty()) {}

LogicalResult Check::emit(const Twine &text) const {
  if (!location)
    return failure();
  InFlightDiagnostic diagnostic = emitError(*location);
  if (StringRef scope = getScope(*location); !scope.empty())
    diagnostic << scope << ": ";
  return diagnostic << text;
}

LogicalResult Check::fail(const char *rule, const Twine &got, const Twine &expected) const {
  return emit(withValues(rule, got, expected));
}

std::string Check::text(ArrayRef<AffineExpr> extents) const {
  return "[" + llvm::join(llvm::map_range(extents, [&](AffineExpr extent) { return text(extent); }), ", ") + "]";
}

std::string Check::text(RankedTensorType type) const {
  std::string element;
  llvm::raw_string_ostream(element) << type.getElementType();
  return (element == "i1" ? "boolean" : element) + text(getExtents(type));
}

std::string Check::text(ArrayRef<RankedTensorType> types) const {
  return llvm::join(llvm::map_range(types, [&](RankedTensorType type) { return text(type); }), ", ");
}

std::optional<Interval> Check::bounds(AffineExpr extent) const {
  SmallVector<Interval> assumed(symbolBounds);
  extent.walk([&](AffineExpr part) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(part); symbol && symbol.getPosition() >= assumed.size())
      assumed.resize(symbol.getPosition() + 1, Interval{1, INT32_MAX});
  });
  return getBounds(canonicalExtent(extent), assumed);
}

bool Check::atLeast(AffineExpr a, AffineExpr b) const {
  auto spare = bounds(a - b);
  if (!spare)
    return false;
  if (spare->min >= 0 || (isInKernel && spare->max >= 0))
    return true;
  auto greater = dyn_cast<AffineSymbolExpr>(a), less = dyn_cast<AffineSymbolExpr>(b);
  return greater && less && greater.getPosition() < symbols.size() && less.getPosition() < symbols.size() &&
         symbols[greater.getPosition()].getLeast() == symbols[less.getPosition()].getName();
}

LogicalResult Check::report(StringRef problem, const Twine &got, const Twine &expected) const {
  std::string text = problem.str();
  if (!expected.isTriviallyEmpty())
    text += ("; expected " + expected).str();
  return emit(text + ", got " + got);
}

LogicalResult Check::extents(TypeRange types) const {
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue;
    if (!hasExtents(tensor)) {
      std::string printed;
      llvm::raw_string_ostream(printed) << tensor;
      return report("tensor: dynamic dimension without its extent; expected an extents map of its rank", printed);
    }
    if (llvm::is_contained(tensor.getShape(), 0))
      return fail(rules::tensor_c1, text(tensor));
  }
  return success();
}

LogicalResult Check::axis(const char *rule, int64_t axis, RankedTensorType type) const {
  if (axis >= 0 && axis < type.getRank())
    return success();
  return fail(rule, "axis " + Twine(axis) + " of " + text(type));
}

LogicalResult Check::sameElement(const char *rule, ArrayRef<RankedTensorType> types) const {
  if (llvm::all_equal(llvm::map_range(types, [](RankedTensorType type) { return type.getElementType(); })))
    return success();
  return fail(rule, text(types));
}

LogicalResult Check::keepsElement(StringRef op, RankedTensorType operand, RankedTensorType result) const {
  if (operand.getElementType() == result.getElementType())
    return success();
  return report((op + ": element types differ; expected the operand's").str(), text({operand, result}));
}

FailureOr<SmallVector<AffineExpr>> Check::broadcast(const char *rule, ArrayRef<AffineExpr> lhs,
                                                    ArrayRef<AffineExpr> rhs) const {
  SmallVector<AffineExpr> result(lhs.size() < rhs.size() ? rhs : lhs);
  ArrayRef<AffineExpr> shorter = lhs.size() < rhs.size() ? lhs : rhs;
  for (size_t i = 0; i < shorter.size(); ++i) {
    AffineExpr &extent = result[result.size() - shorter.size() + i];
    if (extent == shorter[i] || isConstant(shorter[i], 1))
      continue;
    if (!isConstant(extent, 1))
      return fail(rule, text(lhs) + " and " + text(rhs));
    extent = shorter[i];
  }
  return result;
}

} // namespace mlir::kiln
