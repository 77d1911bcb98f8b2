// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the ops that kernel formation introduces.
#include "compiler/dialect/Check.h"
#include "compiler/dialect/KernelAttention.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::kiln;

/// Whether rank, element type, static dimensions and layout agree. Symbols differ between a kernel and its caller.
static bool agree(Type actual, Type formal) {
  auto lhs = dyn_cast<RankedTensorType>(actual), rhs = dyn_cast<RankedTensorType>(formal);
  return lhs && rhs && lhs.getShape() == rhs.getShape() && lhs.getElementType() == rhs.getElementType() &&
         dyn_cast_or_null<TiledAttr>(lhs.getEncoding()) == dyn_cast_or_null<TiledAttr>(rhs.getEncoding());
}

int64_t CallOp::getNumGroups() { return getEnds() ? getEnds().getType().getDimSize(0) : 1; }

RankedTensorType CallOp::getPart(RankedTensorType type, int64_t groups) {
  SmallVector<int64_t> shape(type.getShape());
  shape.front() /= groups;
  return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
}

bool CallOp::isPerGroup(int64_t argument) { return getPerGroup() && llvm::is_contained(*getPerGroup(), argument); }

/// Whether a tensor of a grouped call agrees with that of its kernel: it has rows, of which the kernel has any number.
static bool agreeInRows(Type actual, Type formal) {
  auto lhs = dyn_cast<RankedTensorType>(actual), rhs = dyn_cast<RankedTensorType>(formal);
  return lhs && rhs && lhs.getRank() == rhs.getRank() && lhs.getRank() > 0 && rhs.isDynamicDim(0) &&
         lhs.getShape().drop_front() == rhs.getShape().drop_front() && lhs.getElementType() == rhs.getElementType() &&
         !isa_and_nonnull<TiledAttr>(lhs.getEncoding());
}

static LogicalResult verifyGroups(CallOp call, FunctionType kernel) {
  RankedTensorType ends = call.getEnds() ? call.getEnds().getType() : RankedTensorType();
  if (!ends)
    return call.getPerGroup() ? call.emitOpError() << "tensors of groups without groups; expected their ends"
                              : success();
  if (ends.getRank() != 1 || !ends.hasStaticShape() || call.getExtents().size() != 1)
    return call.emitOpError() << "wrong groups; expected ends of rank 1 and a kernel of rows, got " << ends << " and "
                              << call.getExtents().size() << " extents";
  for (auto [i, argument] : llvm::enumerate(call.getArguments())) {
    auto actual = cast<RankedTensorType>(argument.getType());
    Type formal = kernel.getInput(1 + i);
    const bool isDivided =
        actual.getRank() > 0 && !actual.isDynamicDim(0) && actual.getDimSize(0) % ends.getDimSize(0) == 0;
    const bool agrees = !call.isPerGroup(static_cast<int64_t>(i))
                            ? agreeInRows(actual, formal)
                            : isDivided && agree(CallOp::getPart(actual, ends.getDimSize(0)), formal);
    if (!agrees)
      return call.emitOpError() << "wrong type of an argument of groups; expected rows or parts of " << formal
                                << ", got " << actual;
  }
  for (auto [actual, formal] : llvm::zip_equal(call.getResultTypes(), kernel.getResults()))
    if (!agreeInRows(actual, formal))
      return call.emitOpError() << "wrong type of a result of groups; expected rows of " << formal << ", got "
                                << actual;
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!kernel || !kernel->hasAttr(kernelAttrName))
    return emitOpError() << "callee is no kernel; expected a kernel function, got " << getCalleeAttr();
  Check check(*this);
  if (failed(check.extents(getOperandTypes())) || failed(check.extents(getResultTypes())))
    return failure();
  FunctionType type = kernel.getFunctionType();
  size_t indices = llvm::count_if(type.getInputs(), [](Type input) { return input.isIndex(); });
  if (getExtents().size() != indices)
    return emitOpError() << "wrong number of extents; expected " << indices << ", got " << getExtents().size();
  if (getArguments().size() != type.getNumInputs() - indices || getNumResults() != type.getNumResults())
    return emitOpError() << "wrong number of tensors or results; expected " << type.getNumInputs() - indices << " and "
                         << type.getNumResults() << ", got " << getArguments().size() << " and " << getNumResults();
  if (failed(verifyGroups(*this, type)))
    return failure();
  if (getEnds())
    return success();
  for (auto [actual, formal] : llvm::zip_equal(getArguments().getTypes(), type.getInputs().drop_front(indices)))
    if (!agree(actual, formal))
      return emitOpError() << "wrong type of an argument; expected " << formal << ", got " << actual;
  for (auto [actual, formal] : llvm::zip_equal(getResultTypes(), type.getResults()))
    if (!agree(actual, formal))
      return emitOpError() << "wrong type of a result; expected " << formal << ", got " << actual;
  return success();
}

LogicalResult SinusoidOp::verify() {
  Check check(*this);
  auto positions = cast<RankedTensorType>(getPositions().getType()),
       table = cast<RankedTensorType>(getTable().getType()), result = cast<RankedTensorType>(getResult().getType());
  if (failed(check.extents({positions, table, result})))
    return failure();
  const int64_t fewest = hasFloatPositions() ? 4 : 3;
  if (table.getRank() != 2 || (table.getDimSize(0) != fewest && table.getDimSize(0) != fewest + 1))
    return check.report(hasFloatPositions()
                            ? "sinusoid: wrong shape of the table; expected [4, width], or [5, width] with axes"
                            : "sinusoid: wrong shape of the table; expected [3, width], or [4, width] with axes",
                        check.text(table));
  SmallVector<AffineExpr> extents = getExtents(positions);
  if (hasAxes()) {
    if (extents.size() < 2)
      return check.report("sinusoid: wrong rank of the positions; expected an axis for the pairs' axes",
                          check.text(positions));
    extents.erase(extents.begin());
  }
  extents.push_back(getExtents(table).back());
  if (getExtents(result) != extents)
    return check.report("sinusoid: wrong shape of the result", check.text(result), check.text(extents));
  return success();
}

//===- kernel_attention --------------------------------------------------===//

namespace {

/// A region of kernel_attention with what it reads.
struct AttentionPart {
  StringRef name;
  Region &region;
  ValueRange operands;
  ArrayAttr maps;
  unsigned scalars;           // arguments after the elements of the operands
  SmallVector<unsigned> uses; // numbers of the loops, from the heads on, that its maps may use
};

LogicalResult verifyMaps(KernelAttentionOp op, const AttentionPart &part) {
  const unsigned rank = op.getBatchRank();
  if (part.maps.size() != part.operands.size())
    return op.emitOpError() << part.name << ": wrong number of maps; expected one for each operand, got "
                            << part.maps.size() << " for " << part.operands.size();
  for (auto [map, operand] : llvm::zip_equal(part.maps.getAsValueRange<AffineMapAttr>(), part.operands)) {
    bool isOfLoops = map.getNumDims() == rank + 5 && map.getNumSymbols() == 0 &&
                     map.getNumResults() == unsigned(cast<RankedTensorType>(operand.getType()).getRank());
    for (unsigned loop = 0; isOfLoops && loop < map.getNumDims(); ++loop)
      isOfLoops = !map.isFunctionOfDim(loop) || loop < rank || llvm::is_contained(part.uses, loop - rank);
    if (!isOfLoops)
      return op.emitOpError() << part.name << ": wrong map; expected the indices of an operand over its loops, got "
                              << AffineMapAttr::get(map);
  }
  return success();
}

LogicalResult verifyPart(KernelAttentionOp op, const AttentionPart &part) {
  if (failed(verifyMaps(op, part)))
    return failure();
  Block &block = part.region.front();
  SmallVector<Type> expected;
  for (Value operand : part.operands)
    expected.push_back(getElementTypeOrSelf(operand.getType()));
  expected.append(part.scalars, Float32Type::get(op.getContext()));
  if (TypeRange(block.getArgumentTypes()) != TypeRange(expected))
    return op.emitOpError() << part.name << ": wrong arguments of the region; expected " << expected << ", got "
                            << block.getArgumentTypes();
  auto yield = dyn_cast<KernelYieldOp>(block.getTerminator());
  if (!yield)
    return op.emitOpError() << part.name << ": wrong terminator of the region; expected kernel_yield, got "
                            << block.getTerminator()->getName();
  TypeRange yielded = yield.getOperandTypes();
  const bool hasLength = part.name == "score" && yielded.size() == 2 && isa<IntegerType>(yielded[1]);
  if (yielded.empty() || !yielded[0].isF32() || (yielded.size() != 1 && !hasLength))
    return op.emitOpError() << part.name << ": wrong element of the region; expected f32, got " << yielded;
  for (auto index : block.getOps<KernelIndexOp>())
    if (const uint64_t loop = index.getLoop(); loop >= op.getOver().getNumResults())
      return index.emitOpError() << "wrong loop; expected one below " << op.getOver().getNumResults() << ", got "
                                 << loop;
  return success();
}

} // namespace

LogicalResult KernelAttentionOp::verify() {
  if (getOver().getNumResults() < 5 || getOver().getNumDims() != 0)
    return emitOpError() << "wrong loops; expected extents of heads, queries, keys and both channels, got "
                         << getOverAttr();
  if (getCausal() && (getCausal()->getNumResults() != 1 || getCausal()->getNumDims() != 0))
    return emitOpError() << "wrong causal offset; expected a number over the symbols, got " << getCausalAttr();
  if (getWindow() && (!getCausal() || *getWindow() < 1))
    return emitOpError() << "wrong window; expected at least one key, of causal attention, got " << *getWindow();
  const unsigned rank = getBatchRank();
  enum : unsigned { Head, Query, Key, Depth, Channel };
  const AttentionPart parts[] = {{"query", getQueryElement(), getQuery(), getQueryMaps(), 0, {Head, Query, Depth}},
                                 {"key", getKeyElement(), getKey(), getKeyMaps(), 0, {Head, Key, Depth}},
                                 {"value", getValueElement(), getValue(), getValueMaps(), 0, {Head, Key, Channel}},
                                 {"score", getScoreElement(), getScore(), getScoreMaps(), 1, {Head, Query, Key}},
                                 {"weight", getWeightElement(), {}, ArrayAttr::get(getContext(), {}), 2, {}}};
  for (const AttentionPart &part : parts)
    if (failed(verifyPart(*this, part)))
      return failure();
  if (hasSink() != getSinkMaps().has_value())
    return emitOpError() << "sink: maps without a region, or the reverse; expected both";
  if (hasSink() && failed(verifyPart(*this, {"sink", getSinkElement(), getSink(), *getSinkMaps(), 1, {Head, Query}})))
    return failure();
  SmallVector<AffineExpr> extents(getLoopExtents().take_front(rank));
  for (unsigned loop : {Query, Head, Channel})
    extents.push_back(getLoopExtents()[rank + loop]);
  Check check(*this);
  if (failed(check.extents(getOperandTypes())) || failed(check.extents(getType())))
    return failure();
  if (!llvm::equal(mlir::kiln::getExtents(getType()), llvm::map_range(extents, canonicalExtent)))
    return check.report("kernel_attention: wrong shape of the result", check.text(getType()), check.text(extents));
  return success();
}
