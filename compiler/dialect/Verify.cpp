// SPDX-License-Identifier: Apache-2.0
//
// The rules of ops whose result types are stated, of attributes and of entry functions.
#include "compiler/dialect/Check.h"

#include "llvm/ADT/StringSet.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kiln {

//===- Attributes ----------------------------------------------------------------------------------------------------===//

LogicalResult SymbolAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name, int64_t min, int64_t max) {
  if (name.empty())
    return emitError() << "symbol requires a name";
  if (min < 1 || min > max)
    return emitError() << "symbol \"" << name << "\" requires bounds with 1 <= minimum <= maximum, got " << min << " and " << max;
  return success();
}

LogicalResult TiledAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t dim, int64_t size) {
  if (dim < 0 || dim > 1)
    return emitError() << "tiled requires dimension 0 or 1, got " << dim;
  if (size < 1)
    return emitError() << "tiled requires a size of at least 1, got " << size;
  return success();
}

LogicalResult TiledAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                        function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2 || ShapedType::isDynamicShape(shape))
    return emitError() << "tiled requires a matrix of fixed extents";
  return success();
}

//===- Ops -----------------------------------------------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  Check check(*this);
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return check.fail("fixed extents");
  if (failed(check.extents(type)))
    return failure();
  if (getSources().empty())
    return check.fail("at least one source");
  int64_t copies = 1, depth = 0;
  for (Operation *parent = (*this)->getParentOp(); parent; parent = parent->getParentOp())
    if (auto repeat = dyn_cast<RepeatOp>(parent)) {
      copies *= repeat.getCount();
      ++depth;
    }
  if (static_cast<int64_t>(getCopies()) != copies)
    return check.fail("a copy for each of " + Twine(copies) + " layers, got " + Twine(getCopies()));
  for (StringRef source : getSources().getAsValueRange<StringAttr>()) {
    if (source.empty())
      return check.fail("sources with a name");
    if (static_cast<int64_t>(source.count("{}")) != depth)
      return check.fail("a {} in its name for each of " + Twine(depth) + " enclosing repeats, got \"" + source + "\"");
  }
  int64_t joinDim = getJoinDim();
  if (joinDim != 0 && (joinDim < 0 || joinDim >= type.getRank()))
    return check.fail("a join dimension of " + check.text(type) + ", got " + Twine(joinDim));
  if (std::optional<ArrayRef<int64_t>> extents = getSourceExtents()) {
    if (extents->size() != getSources().size() || type.getRank() == 0)
      return check.fail("an extent for each of " + Twine(getSources().size()) + " sources, got " + Twine(extents->size()));
    int64_t sum = 0;
    for (int64_t extent : *extents)
      sum += extent;
    if (llvm::any_of(*extents, [](int64_t extent) { return extent < 1; }) || sum != type.getDimSize(joinDim))
      return check.fail("source extents whose sum is " + Twine(type.getDimSize(joinDim)) + ", got " + Twine(sum));
  } else if (getSources().size() > 1) {
    return check.fail("the extents of several sources");
  }
  return success();
}

LogicalResult RepeatOp::verify() {
  Check check(*this);
  if (static_cast<int64_t>(getCount()) < 1)
    return check.fail("a count of at least 1, got " + Twine(static_cast<int64_t>(getCount())));
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return check.fail("a body that ends with kiln.yield");
  TypeRange types = getInits().getTypes();
  if (types != TypeRange(getBody().getArgumentTypes()) || types != TypeRange(yield.getValues().getTypes()) ||
      types != TypeRange(getResultTypes()))
    return check.fail("initial, carried, yielded and resulting values of the same types");
  return check.extents(types);
}

LogicalResult SinusoidalOp::verify() {
  Check check(*this);
  auto positions = cast<RankedTensorType>(getPositions().getType()), result = cast<RankedTensorType>(getType());
  if (failed(check.extents({positions, result})) || failed(check.minRank("a result", result, 1)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(result);
  if (getExtents(positions) != ArrayRef(extents).drop_back())
    return check.fail("a result " + check.text(positions) + " and one axis more, got " + check.text(result));
  auto width = dyn_cast<AffineConstantExpr>(extents.back());
  if (!width || width.getValue() % 2 != 0)
    return check.fail("an even width, got " + check.text(extents.back()));
  return success();
}

static LogicalResult verifyAlongAxis(Operation *op, Type type, int64_t axis) {
  Check check(op);
  if (failed(check.extents(type)))
    return failure();
  return check.axis(axis, cast<RankedTensorType>(type));
}

LogicalResult SoftmaxOp::verify() { return verifyAlongAxis(*this, getType(), getAxis()); }
LogicalResult LogSoftmaxOp::verify() { return verifyAlongAxis(*this, getType(), getAxis()); }

LogicalResult ReshapeOp::verify() {
  Check check(*this);
  auto from = cast<RankedTensorType>(getX().getType()), to = cast<RankedTensorType>(getType());
  if (failed(check.extents({from, to})) || failed(check.sameElement({from, to})))
    return failure();
  if (getProduct(getExtents(from), getContext()) != getProduct(getExtents(to), getContext()))
    return check.fail("equally many elements, got " + check.text(from) + " and " + check.text(to));
  return success();
}

LogicalResult SliceOp::verify() {
  Check check(*this);
  auto from = cast<RankedTensorType>(getX().getType()), to = cast<RankedTensorType>(getType());
  int64_t axis = getAxis(), start = getStart();
  if (failed(check.extents({from, to})) || failed(check.sameElement({from, to})) || failed(check.axis(axis, from)) ||
      failed(check.rank("a result", to, from.getRank())))
    return failure();
  SmallVector<AffineExpr> whole = getExtents(from), part = getExtents(to);
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (i != axis && whole[i] != part[i])
      return check.fail("equal extents but along axis " + Twine(axis) + ", got " + check.text(from) + " and " + check.text(to));
  if (start < 0)
    return check.fail("a start of at least 0, got " + Twine(start));
  // Without bounds on its symbols a run-time extent is at least 1.
  SmallVector<Interval> bounds = getSymbolBounds(*this);
  bounds.resize(std::max<size_t>(bounds.size(), getNumSymbols({from, to})), Interval{1, int64_t(1) << 31});
  auto rest = getBounds(canonicalExtent(whole[axis] - part[axis] - start), bounds);
  if (!rest || rest->min < 0)
    return check.fail("an end within " + check.text(whole[axis]) + ", got start " + Twine(start) + " and extent " +
                      check.text(part[axis]));
  return success();
}

//===- Modules and functions -----------------------------------------------------------------------------------------===//

LogicalResult KilnDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == symbolsAttrName) {
    auto symbols = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op) || !symbols || !llvm::all_of(symbols, llvm::IsaPred<SymbolAttr>))
      return op->emitError() << name << " requires a module and an array of symbols";
    llvm::StringSet<> names;
    for (auto symbol : symbols.getAsRange<SymbolAttr>())
      if (!names.insert(symbol.getName()).second)
        return op->emitError() << name << " requires different names, got \"" << symbol.getName() << "\" twice";
    return success();
  }
  if (name == entryAttrName || name == kernelAttrName) {
    if (!isa<FunctionOpInterface>(op) || !isa<UnitAttr>(attribute.getValue()))
      return op->emitError() << name << " requires a function and no value";
    return success();
  }
  if (name == boundsAttrName) {
    auto function = dyn_cast<FunctionOpInterface>(op);
    auto bounds = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!function || !bounds)
      return op->emitError() << name << " requires a function and an array of 64-bit integers";
    int64_t symbols = llvm::count_if(function.getArgumentTypes(), llvm::IsaPred<IndexType>);
    if (bounds.size() != 2 * symbols)
      return op->emitError() << name << " requires two bounds for each of " << symbols << " index arguments, got " << bounds.size();
  }
  return success();
}

LogicalResult KilnDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  StringRef name = attribute.getName();
  if (!function || (name != symbolAttrName && name != nameAttrName))
    return success();
  auto text = dyn_cast<StringAttr>(attribute.getValue());
  if (!text)
    return op->emitError() << name << " requires a string";
  if (name == symbolAttrName) {
    SmallVector<SymbolAttr> symbols = getSymbols(op);
    if (argument >= symbols.size() || symbols[argument].getName() != text.getValue() ||
        !isa<IndexType>(function.getArgumentTypes()[argument]))
      return op->emitError() << name << " requires an index argument at the place of the module's symbol, got \""
                             << text.getValue() << "\" at " << argument;
  }
  return success();
}

LogicalResult KilnDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  if (attribute.getName() == nameAttrName && !isa<StringAttr>(attribute.getValue()))
    return op->emitError() << nameAttrName << " requires a string";
  return success();
}

} // namespace mlir::kiln
