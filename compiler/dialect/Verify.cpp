// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of ops whose result types are not inferred.
#include "compiler/dialect/Check.h"
#include "kiln/frequencies.h"

namespace mlir::kiln {

LogicalResult ParameterOp::verify() {
  Check check(*this);
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return check.report("parameter: shape is not static; expected fixed dimensions",
                        hasExtents(type) ? check.text(type) : "dynamic ones");
  if (failed(check.extents(type)))
    return failure();
  if (getSources().empty())
    return check.report("parameter: no source; expected at least one", "none");
  if (std::optional<StorageAttr> storage = getStorage()) {
    if (!type.getElementType().isF32() || type.getEncoding())
      return check.report("parameter: wrong type for a storage; expected f32 without a layout", check.text(type));
    if (storage->getDim() >= type.getRank())
      return check.report("parameter: dimension of the scales out of range; expected one of its dimensions",
                          Twine(storage->getDim()) + " of " + check.text(type));
  }
  uint64_t copies = 1, depth = 0;
  for (Operation *parent = (*this)->getParentOp(); parent; parent = parent->getParentOp())
    if (auto loop = dyn_cast<LoopInterface>(parent); loop && loop.isOverLayers()) {
      auto count = dyn_cast<AffineConstantExpr>(loop.getTripCount());
      if (!count)
        return check.report("loop over layers: dynamic number of layers; expected a fixed one",
                            describeExtent(loop.getTripCount()));
      copies = llvm::SaturatingMultiply(copies, static_cast<uint64_t>(count.getValue()));
      ++depth;
    }
  if (getCopies() != copies)
    return check.report("parameter: copies differ from the enclosing layers", Twine(getCopies()), Twine(copies));
  for (StringRef source : getSources().getAsValueRange<StringAttr>()) {
    if (source.empty())
      return check.report("parameter: unnamed source; expected a name", "an empty one");
    if (source.count("{}") != depth)
      return check.report("parameter: {} in its name differ from the enclosing loops over layers", source,
                          Twine(depth) + " times {}");
  }
  if (getDerived() && (type.getEncoding() || getVariable() || getStorage() || getSources().size() > 1))
    return check.report("parameter: cannot be derived; expected one constant tensor without layout or storage",
                        check.text(type));
  int64_t joinDim = getJoinDim();
  if (joinDim != 0 && (joinDim < 0 || joinDim >= type.getRank()))
    return check.report("parameter: join dimension out of range; expected one within the rank",
                        Twine(joinDim) + " of " + check.text(type));
  if (!getSourceExtents()) {
    if (getSources().size() > 1)
      return check.report("parameter: sizes of the sources are missing; expected one for each", "none");
    return success();
  }
  ArrayRef<int64_t> extents = *getSourceExtents();
  if (extents.size() != getSources().size() || type.getRank() == 0)
    return check.report("parameter: number of sizes differs from the sources", Twine(extents.size()),
                        Twine(getSources().size()));
  int64_t sum = 0;
  for (int64_t extent : extents) {
    if (extent < 1 || extent > type.getDimSize(joinDim) - sum)
      return check.report("parameter: sizes of the sources do not add up; expected the joined dimension",
                          check.text(type));
    sum += extent;
  }
  if (sum != type.getDimSize(joinDim))
    return check.report("parameter: sizes of the sources do not add up", Twine(sum), Twine(type.getDimSize(joinDim)));
  return success();
}

static std::string listTypes(TypeRange types) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(types, stream);
  return text;
}

/// Returns the types that the body yields, or fails if it does not end with a yield.
static FailureOr<TypeRange> getYieldedTypes(LoopInterface loop, const Check &check) {
  if (auto yield = dyn_cast<YieldOp>(loop.getYield()))
    return TypeRange(yield.getValues().getTypes());
  return check.report((loop->getName().stripDialect() + ": wrong end of the body; expected kiln.yield").str(),
                      loop.getYield()->getName().getStringRef());
}

/// Whether each whole stacks its part along a new first axis of the given length. Without a length, all must have a
/// common one, which is returned.
static bool areStacked(TypeRange wholes, TypeRange parts, AffineExpr &length) {
  return wholes.size() == parts.size() && llvm::all_of(llvm::zip(wholes, parts), [&](auto pair) {
           auto whole = cast<RankedTensorType>(std::get<0>(pair)), part = dyn_cast<RankedTensorType>(std::get<1>(pair));
           SmallVector<AffineExpr> extents = getExtents(whole);
           if (extents.empty() || (length && extents.front() != length) || !part || !hasExtents(part))
             return false;
           length = extents.front();
           return ArrayRef(extents).drop_front() == ArrayRef(getExtents(part)) &&
                  whole.getElementType() == part.getElementType();
         });
}

LogicalResult RepeatOp::verify() {
  Check check(*this);
  int64_t count = getCount();
  if (count < 1)
    return check.fail(rules::stack_c2, Twine(count));
  FailureOr<TypeRange> yielded = getYieldedTypes(*this, check);
  if (failed(yielded))
    return failure();
  TypeRange inits = getInits().getTypes();
  const unsigned carried = inits.size();
  for (TypeRange other : {TypeRange(getBody().getArgumentTypes()), yielded->take_front(carried),
                          TypeRange(getResultTypes()).take_front(carried)})
    if (inits != other)
      return check.fail(rules::stack_c1, listTypes(other), listTypes(inits));
  if (failed(check.extents(getResultTypes())))
    return failure();
  AffineExpr layers = getTripCount();
  if (!areStacked(getStacked().getTypes(), yielded->drop_front(carried), layers))
    return check.report("repeat: results do not stack its outputs", listTypes(getStacked().getTypes()),
                        "for each layer " + listTypes(yielded->drop_front(carried)));
  return success();
}

LogicalResult ScanOp::verify() {
  Check check(*this);
  FailureOr<TypeRange> yielded = getYieldedTypes(*this, check);
  if (failed(yielded) || failed(check.extents(getOperandTypes())) || failed(check.extents(getStacked().getTypes())))
    return failure();
  TypeRange inits = getInits().getTypes(), arguments = getBody().getArgumentTypes(),
            sequences = getSequences().getTypes();
  if (sequences.empty())
    return check.report("scan: no sequence; expected at least one", "none");
  unsigned carried = inits.size();
  for (TypeRange other : {arguments.take_front(carried), yielded->take_front(carried), TypeRange(getLast().getTypes())})
    if (inits != other)
      return check.fail(rules::scan_c2, listTypes(other), listTypes(inits));

  AffineExpr length;
  if (!areStacked(sequences, arguments.drop_front(carried), length))
    return check.fail(rules::scan_c1, listTypes(sequences), listTypes(arguments.drop_front(carried)));
  if (!areStacked(getStacked().getTypes(), yielded->drop_front(carried), length))
    return check.report("scan: results do not stack its outputs", listTypes(getStacked().getTypes()),
                        "for each step " + listTypes(yielded->drop_front(carried)));
  if (getUntil()) {
    auto ends = carried > 0 ? dyn_cast<RankedTensorType>(inits.front()) : RankedTensorType();
    if (!ends || ends.getRank() != 0 || !ends.getElementType().isInteger(1))
      return check.report("scan: wrong first value of a loop that ends early; expected a boolean scalar",
                          carried > 0 ? listTypes(inits.front()) : std::string("none"));
    if (getReverse())
      return check.report("scan: cannot end early in reverse order", "reverse", "the order of the slices");
  }
  if (getAhead() > 0 && (carried > 0 || getReverse() || getLayers() || !isa<AffineConstantExpr>(length)))
    return check.report("scan: cannot run ahead; expected no carried values and fixed iterations in their order",
                        "others");
  return success();
}

/// Whether each whole has the rows of all sequences, and the slice those of one sequence.
static bool areBatched(TypeRange wholes, TypeRange slices, const BatchSymbols &symbols) {
  return wholes.size() == slices.size() && llvm::all_of(llvm::zip(wholes, slices), [&](auto pair) {
           auto whole = cast<RankedTensorType>(std::get<0>(pair)),
                slice = dyn_cast<RankedTensorType>(std::get<1>(pair));
           RankedTensorType expected = slice ? symbols.getWhole(slice) : RankedTensorType();
           return expected && whole.getElementType() == expected.getElementType() &&
                  getExtents(whole) == getExtents(expected);
         });
}

LogicalResult EachSequenceOp::verify() {
  Check check(*this);
  FailureOr<TypeRange> yielded = getYieldedTypes(*this, check);
  if (failed(yielded) || failed(check.extents(getOperandTypes())) || failed(check.extents(getResultTypes())))
    return failure();
  if (std::optional<ArrayRef<int64_t>> rows = getRows(); rows && rows->size() != 2)
    return check.report("each_sequence: wrong number of symbols; expected those of all rows and of a sequence's",
                        Twine(rows->size()));
  for (Operation *parent = (*this)->getParentOp(); parent; parent = parent->getParentOp())
    if (isa<EachSequenceOp, ScanOp>(parent))
      return check.report("each_sequence: inside another loop; expected none but kiln.repeat",
                          parent->getName().getStringRef());
  TypeRange slices = getBody().getArgumentTypes();
  if (!areBatched(getOperandTypes(), slices, getBatchSymbols()))
    return check.report("each_sequence: wrong types of slices", listTypes(slices),
                        "a sequence's rows of " + listTypes(getOperandTypes()));
  if (!areBatched(getResultTypes(), *yielded, getBatchSymbols()))
    return check.report("each_sequence: wrong types of results", listTypes(getResultTypes()),
                        "all sequences' rows of " + listTypes(*yielded));
  return success();
}

/// Checks the frequency and the axis of each pair.
static LogicalResult verifyPairs(SinusoidalOp op, const Check &check) {
  const auto pairs = static_cast<size_t>(op.getType().getShape().back() / 2);
  const ArrayRef<double> frequencies = op.getFrequencies();
  const ArrayRef<int32_t> axes = op.getAxes();
  if (!frequencies.empty() && frequencies.size() != pairs)
    return check.report("sinusoidal: wrong number of frequencies; expected one for each pair of columns",
                        Twine(frequencies.size()), Twine(pairs));
  if (!axes.empty() && axes.size() != pairs)
    return check.report("sinusoidal: wrong number of axes; expected one for each pair of columns", Twine(axes.size()),
                        Twine(pairs));
  for (double frequency : frequencies)
    if (!(frequency >= 0 && frequency <= ::kiln::largest_frequency))
      return check.fail(rules::sinusoidal_c4, std::to_string(frequency));
  if (axes.empty())
    return success();
  const AffineExpr extent = getExtents(cast<RankedTensorType>(op.getPositions().getType())).front();
  const auto count = dyn_cast<AffineConstantExpr>(extent);
  if (!count)
    return check.fail(rules::sinusoidal_c5, check.text(extent), "a static one");
  for (int32_t axis : axes)
    if (axis < 0 || axis >= count.getValue())
      return check.fail(rules::sinusoidal_c6, Twine(axis));
  return success();
}

SmallVector<double> SinusoidalOp::getPairFrequencies() {
  if (!getFrequencies().empty())
    return llvm::to_vector(getFrequencies());
  const int64_t width = getType().getShape().back();
  SmallVector<double> frequencies;
  for (int64_t c = 0; c < width; c += 2)
    frequencies.push_back(std::pow(getBase().convertToDouble(), -static_cast<double>(c) / static_cast<double>(width)));
  return frequencies;
}

LogicalResult SinusoidalOp::verify() {
  Check check(*this);
  auto positions = cast<RankedTensorType>(getPositions().getType()), result = cast<RankedTensorType>(getType());
  if (failed(check.extents({positions, result})))
    return failure();
  const bool hasAxes = !getAxes().empty();
  if (positions.getRank() < 1 + hasAxes)
    return check.fail(rules::sinusoidal_c1, check.text(positions));
  if (result.getRank() != positions.getRank() + 1 - hasAxes ||
      ArrayRef(getExtents(result)).drop_back() != ArrayRef(getExtents(positions)).drop_front(hasAxes))
    return check.report("sinusoidal: wrong shape of the result; expected [positions, width]",
                        check.text({positions, result}));
  auto width = dyn_cast<AffineConstantExpr>(getExtents(result).back());
  if (!width || width.getValue() % 2 != 0)
    return check.fail(rules::sinusoidal_c2, check.text(getExtents(result).back()));
  if (!(getBase().convertToDouble() > 1))
    return check.fail(rules::sinusoidal_c3, std::to_string(getBase().convertToDouble()));
  return verifyPairs(*this, check);
}

LogicalResult verifyExtents(Operation *op) { return Check(op).extents(op->getResultTypes()); }

static LogicalResult verifyAxis(Operation *op, const char *rule, RankedTensorType type, int64_t axis) {
  Check check(op);
  if (failed(check.extents(type)))
    return failure();
  return check.axis(rule, axis, type);
}

LogicalResult SoftmaxOp::verify() { return verifyAxis(*this, rules::softmax_c1, getType(), getAxis()); }
LogicalResult LogSoftmaxOp::verify() { return verifyAxis(*this, rules::softmax_c1, getType(), getAxis()); }
LogicalResult CumsumOp::verify() { return verifyAxis(*this, rules::reduction_c1, getType(), getAxis()); }

LogicalResult DropoutOp::verify() {
  Check check(*this);
  for (Value number : getOperands().drop_front())
    if (auto type = cast<RankedTensorType>(number.getType()); type.getRank() > 0)
      return check.report("dropout: seed, step or iteration is not a scalar; expected rank 0", check.text(type));
  if (const double probability = getProbability().convertToDouble(); !(probability >= 0 && probability < 1))
    return check.fail(rules::dropout_c1, std::to_string(probability));
  return success();
}

LogicalResult CastOp::verify() {
  Check check(*this);
  auto from = cast<RankedTensorType>(getX().getType()), to = cast<RankedTensorType>(getType());
  if (failed(check.extents({from, to})))
    return failure();
  if (getExtents(from) != getExtents(to))
    return check.report("cast: shape differs from the operand's", check.text(to), check.text(from));
  if (!isFloatingNumber(to.getElementType()) && !to.getElementType().isInteger(32) && !to.getElementType().isInteger(8))
    return check.fail(rules::cast_c1, check.text(to));
  return success();
}

LogicalResult ReshapeOp::verify() {
  Check check(*this);
  auto from = cast<RankedTensorType>(getX().getType()), to = cast<RankedTensorType>(getType());
  if (failed(check.extents({from, to})) || failed(check.keepsElement("reshape", from, to)))
    return failure();
  if (getProduct(getExtents(from), getContext()) != getProduct(getExtents(to), getContext()))
    return check.fail(rules::reshape_c1, check.text(getExtents(from)), check.text(getExtents(to)));
  return success();
}

LogicalResult ExpandOp::verify() {
  Check check(*this);
  auto from = cast<RankedTensorType>(getX().getType()), to = cast<RankedTensorType>(getType());
  if (failed(check.extents({from, to})) || failed(check.keepsElement("expand", from, to)))
    return failure();
  auto both = check.broadcast(rules::expand_c1, getExtents(from), getExtents(to));
  if (failed(both))
    return failure();
  if (*both != getExtents(to))
    return check.fail(rules::expand_c1, check.text(getExtents(from)), check.text(getExtents(to)));
  return success();
}

LogicalResult SliceOp::verify() {
  Check check(*this);
  auto from = cast<RankedTensorType>(getX().getType()), to = cast<RankedTensorType>(getType());
  int64_t axis = getAxis(), start = getStart();
  if (failed(check.extents({from, to})) || failed(check.axis(rules::slice_c1, axis, from)) ||
      failed(check.keepsElement("slice", from, to)))
    return failure();
  SmallVector<AffineExpr> whole = getExtents(from), part = getExtents(to);
  bool isCompatible = whole.size() == part.size();
  for (size_t i = 0; isCompatible && i < whole.size(); ++i)
    isCompatible = static_cast<int64_t>(i) == axis || whole[i] == part[i];
  if (!isCompatible)
    return check.report("slice: shapes differ; expected the operand's dimensions except along its axis",
                        check.text({from, to}));
  if (getAtEnd() && start != 0)
    return check.report("slice: start given for a slice at the end; expected 0", Twine(start));
  if (getAtEnd() && !check.atLeast(whole[axis], part[axis]))
    return check.fail(rules::last_c2, check.text(part[axis]), check.text(whole[axis]));
  auto rest = check.bounds(whole[axis] - part[axis] - start);
  if (!getAtEnd() && (start < 0 || !rest || rest->min < 0))
    return check.fail(rules::slice_c2, Twine(start) + " + " + check.text(part[axis]), check.text(whole[axis]));
  return success();
}

//===- States ---===//

/// Checks that a state's type has extents, all but the first static, and that the state has room for its rows.
static LogicalResult checkState(const Check &check, RankedTensorType type, int64_t rows, int64_t copies) {
  if (failed(check.extents(type)))
    return failure();
  if (type.getRank() == 0 || llvm::is_contained(type.getShape().drop_front(), ShapedType::kDynamic))
    return check.report("state: no rows of fixed size; expected fixed dimensions after the first", check.text(type));
  auto most = check.bounds(getExtents(type).front());
  if (!most || most->max > rows)
    return check.fail(rules::append_c3, check.text(getExtents(type).front()), Twine(rows));
  if (copies < 1)
    return check.report("state: no copies; expected at least one", Twine(copies));
  return success();
}

LogicalResult StateOp::verify() {
  return checkState(Check(*this), cast<RankedTensorType>(getType()), getRows(), getCopies());
}

LogicalResult SlideOp::verify() {
  Check check(*this);
  auto added = cast<RankedTensorType>(getX().getType()), type = cast<RankedTensorType>(getType());
  const auto rows = static_cast<int64_t>(getRows()), room = static_cast<int64_t>(getRoom());
  if (failed(check.extents(added)) || failed(checkState(check, type, room, getCopies())))
    return failure();
  SmallVector<AffineExpr> expected = added.getRank() > 0 ? getExtents(added) : SmallVector<AffineExpr>();
  if (!expected.empty())
    expected.front() = canonicalExtent(expected.front() + rows);
  if (expected != getExtents(type) || added.getElementType() != type.getElementType())
    return check.report("slide: result is not the state's rows and the operand's", check.text(added), check.text(type));
  auto most = check.bounds(getExtents(type).front());
  if (!most || most->max + rows > room)
    return check.report("slide: rows of the result and the state exceed the room", check.text(getExtents(type).front()),
                        Twine(room));
  return success();
}

LogicalResult StoreOp::verify() {
  Check check(*this);
  auto type = cast<RankedTensorType>(getX().getType());
  if (failed(checkState(check, type, getRows(), getCopies())))
    return failure();
  if (type.getDimSize(0) != static_cast<int64_t>(getRows()))
    return check.fail(rules::store_c1, check.text(type), Twine(getRows()) + " rows");
  return success();
}

LogicalResult AssignOp::verify() {
  Check check(*this);
  auto parameter = getParameter().getDefiningOp<ParameterOp>();
  if (!parameter || !(parameter.getVariable() || parameter.getDerived()))
    return check.report("assign: wrong target; expected a parameter that is variable or derived",
                        parameter ? "one that is not" : "another value");
  return success();
}

LogicalResult ScatterAddOp::verify() {
  Check check(*this);
  auto indices = cast<RankedTensorType>(getIndices().getType()), rows = cast<RankedTensorType>(getRows().getType()),
       table = cast<RankedTensorType>(getType());
  if (failed(check.extents({indices, rows, table})))
    return failure();
  if (indices.getRank() != 1 || rows.getRank() != 2 || table.getRank() != 2 ||
      getExtents(rows).front() != getExtents(indices).front() || getExtents(rows).back() != getExtents(table).back())
    return check.report("scatter_add: shapes do not match; expected indices [R], rows [R, D] and a result [V, D]",
                        check.text({indices, rows, table}));
  return success();
}

LogicalResult IndexAddOp::verify() {
  Check check(*this);
  auto x = cast<RankedTensorType>(getX().getType()), indices = cast<RankedTensorType>(getIndices().getType()),
       rows = cast<RankedTensorType>(getRows().getType());
  if (failed(check.extents({x, indices, rows})))
    return failure();
  if (indices.getRank() != 1)
    return check.fail(rules::index_add_c1, check.text(indices));
  if (x.getRank() != 2 || rows.getRank() != 2 || getExtents(rows).front() != getExtents(indices).front() ||
      getExtents(rows).back() != getExtents(x).back())
    return check.fail(rules::index_add_c3, check.text({x, indices, rows}));
  return check.sameElement(rules::index_add_c4, {x, rows});
}

LogicalResult ArgsortOp::verify() {
  Check check(*this);
  auto x = cast<RankedTensorType>(getX().getType()), result = cast<RankedTensorType>(getType());
  if (failed(check.extents({x, result})) || failed(check.axis(rules::sort_c1, getAxis(), x)))
    return failure();
  const AffineExpr whole = getExtents(x)[getAxis()];
  SmallVector<AffineExpr> expected = getExtents(x), extents = getExtents(result);
  if (extents.size() == expected.size())
    expected[getAxis()] = extents[getAxis()];
  if (extents != expected)
    return check.report("argsort: wrong shape of the result; expected that of the operand except along the axis",
                        check.text({x, result}));
  if (!check.atLeast(whole, extents[getAxis()]))
    return check.fail(rules::argsort_c1, check.text(extents[getAxis()]), check.text(whole));
  return success();
}

LogicalResult RequireFiniteOp::verify() {
  Check check(*this);
  auto type = cast<RankedTensorType>(getX().getType());
  if (type.getRank() != 0)
    return check.report("require_finite: operand is not a scalar; expected rank 0", check.text(type));
  return success();
}

LogicalResult AppendOp::verify() {
  Check check(*this);
  auto rows = cast<RankedTensorType>(getX().getType()), whole = cast<RankedTensorType>(getType());
  if (failed(checkState(check, whole, getRows(), getCopies())) || failed(check.extents(rows)))
    return failure();
  bool fits = rows.getRank() == whole.getRank() && rows.getElementType() == whole.getElementType();
  for (int64_t i = 1; fits && i < whole.getRank(); ++i)
    fits = i + 1 == whole.getRank() ? whole.getDimSize(i) <= rows.getDimSize(i) &&
                                          int64_t(getColumn()) <= rows.getDimSize(i) - whole.getDimSize(i)
                                    : rows.getDimSize(i) == whole.getDimSize(i);
  if (!fits || int64_t(getColumn()) < 0 || (rows.getRank() == 1 && getColumn() != 0))
    return check.fail(rules::append_c1, check.text({rows, whole}));
  if (!check.atLeast(getExtents(whole).front(), getExtents(rows).front()))
    return check.fail(rules::append_c2, check.text(getExtents(whole).front()), check.text(getExtents(rows).front()));
  return success();
}

LogicalResult ResizeBilinearOp::verify() {
  Check check(*this);
  auto from = cast<RankedTensorType>(getX().getType()), to = cast<RankedTensorType>(getType());
  if (failed(check.extents({from, to})) || failed(check.keepsElement("resize_bilinear", from, to)))
    return failure();
  if (from.getRank() < 3)
    return check.fail(rules::resize_bilinear_c1, check.text(from));
  SmallVector<AffineExpr> before = getExtents(from), after = getExtents(to);
  bool isCompatible = before.size() == after.size();
  for (size_t i = 0, rank = before.size(); isCompatible && i < rank; ++i)
    isCompatible = i + 3 == rank || i + 2 == rank || before[i] == after[i];
  if (!isCompatible)
    return check.report("resize_bilinear: shapes differ; expected the operand's dimensions except height and width",
                        check.text({from, to}));
  for (RankedTensorType type : {from, to})
    for (int64_t extent : type.getShape().take_back(3).drop_back())
      if (ShapedType::isDynamic(extent))
        return check.fail(rules::resize_bilinear_c2, check.text(type));
  return success();
}

} // namespace mlir::kiln
