// SPDX-License-Identifier: Apache-2.0
//
// Registration, and the custom parsers, printers and builders of ops.
#include "compiler/dialect/KilnDialect.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/FoldElements.h"
#include "compiler/dialect/KernelAttention.h"
#include "compiler/dialect/types/Broadcast.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

// The generated code has parameters that it does not use.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "compiler/dialect/KilnDialect.cpp.inc"
#include "compiler/dialect/KilnEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/KilnAttributes.cpp.inc"

#include "compiler/dialect/KilnInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/KilnOps.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/KernelOps.cpp.inc"
#pragma GCC diagnostic pop

namespace mlir::kiln {

/// Fails the build for an op without a role in kernels.
template <class... Ops> static void checkAnswers() {
  static_assert((... && (Ops::template hasTrait<KernelOpInterface::Trait>() || Ops::template hasTrait<HostOp>() ||
                         Ops::template hasTrait<Rewritten>())),
                "an op has KernelOpInterface, or is done by the host, or rewritten before kernels are formed");
}

void KilnDialect::initialize() {
  checkAnswers<
#define GET_OP_LIST
#include "compiler/dialect/KilnOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/KilnAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/KilnOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/KernelOps.cpp.inc"
      >();
}

Operation *KilnDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, location, elements);
}

void ParameterOp::build(OpBuilder &builder, OperationState &state, Type type, ArrayRef<StringRef> sources,
                        int64_t copies, bool isVariable) {
  build(builder, state, type, builder.getStrArrayAttr(sources), copies, DenseI64ArrayAttr(), 0, isVariable,
        StorageAttr(), /*derived=*/false);
}

namespace {
/// The weights that may be written between calls.
struct VariableResource : SideEffects::Resource::Base<VariableResource> {
  StringRef getName() final { return "variables"; }
};
} // namespace

Value getUnshaped(Value value) {
  while (auto view = value.getDefiningOp<ReshapeOp>())
    value = view.getX();
  return value;
}

std::optional<double> getSplat(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto values = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  if (!values || !values.isSplat())
    return std::nullopt;
  return values.getSplatValue<APFloat>().convertToDouble();
}

static bool isVariable(Value value) {
  auto parameter = getUnshaped(value).getDefiningOp<ParameterOp>();
  return parameter && parameter.getVariable();
}

void ParameterOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (getVariable())
    effects.emplace_back(MemoryEffects::Read::get(), VariableResource::get());
}

void AssignOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), VariableResource::get());
}

void AllReduceOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (getOver() == Group::Stages)
    effects.emplace_back(MemoryEffects::Write::get());
}

void CallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (llvm::any_of(getArguments(), isVariable))
    effects.emplace_back(MemoryEffects::Read::get(), VariableResource::get());
}

//===- repeat ---===//

unsigned RepeatOp::getNumCarried() { return getInits().size(); }
bool RepeatOp::isOverLayers() { return true; }
AffineExpr RepeatOp::getTripCount() { return getAffineConstantExpr(getCount(), getContext()); }

void RepeatOp::build(OpBuilder &builder, OperationState &state, int64_t count, ValueRange inits, TypeRange stacked,
                     function_ref<void(OpBuilder &, Location, ValueRange)> buildBody) {
  state.getOrAddProperties<Properties>().count = builder.getI64IntegerAttr(count);
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  state.addTypes(stacked);
  Region *body = state.addRegion();
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locations(inits.size(), state.location);
  Block *block = builder.createBlock(body, {}, inits.getTypes(), locations);
  if (buildBody)
    buildBody(builder, state.location, block->getArguments());
}

/// Prints "-> (types) " if there are any.
static void printStacked(OpAsmPrinter &printer, LoopInterface loop) {
  if (loop.getStacked().empty())
    return;
  printer << "-> (";
  llvm::interleaveComma(loop.getStacked().getTypes(), printer);
  printer << ") ";
}

ParseResult RepeatOp::parse(OpAsmParser &parser, OperationState &state) {
  int64_t count;
  if (parser.parseInteger(count))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  auto parseCarried = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(inits.emplace_back()) || parser.parseColonType(arguments.back().type));
  };
  SMLoc location = parser.getCurrentLocation();
  SmallVector<Type> stacked;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseCarried) ||
      parser.parseOptionalArrowTypeList(stacked) || parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  SmallVector<Type> types = llvm::map_to_vector(arguments, [](auto &argument) { return argument.type; });
  state.addTypes(types);
  state.addTypes(stacked);
  state.getOrAddProperties<Properties>().count = parser.getBuilder().getI64IntegerAttr(count);
  return failure(parser.resolveOperands(inits, types, location, state.operands) ||
                 parser.parseRegion(*state.addRegion(), arguments));
}

void RepeatOp::print(OpAsmPrinter &printer) {
  printer << ' ' << static_cast<int64_t>(getCount()) << " (";
  llvm::interleaveComma(llvm::zip_equal(getCarried(), getInits()), printer, [&](auto pair) {
    auto [argument, init] = pair;
    printer << argument << " = " << init << " : " << init.getType();
  });
  printer << ") ";
  printStacked(printer, *this);
  SmallVector<NamedAttribute> extra = llvm::filter_to_vector(
      (*this)->getAttrs(), [&](NamedAttribute attribute) { return attribute.getName() != getCountAttrName(); });
  if (!extra.empty()) {
    printer.printOptionalAttrDictWithKeyword(extra);
    printer << ' ';
  }
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===- scan ---===//

unsigned ScanOp::getNumCarried() { return getInits().size(); }
bool ScanOp::isOverLayers() { return getLayers(); }
AffineExpr ScanOp::getTripCount() {
  return getExtents(cast<RankedTensorType>(getSequences().front().getType())).front();
}

/// Returns the type of a slice of a tensor along its first axis; null for a scalar.
static RankedTensorType getSliceType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.getRank() == 0 || !hasExtents(tensor))
    return {};
  return getTensorType(ArrayRef(getExtents(tensor)).drop_front(), tensor.getElementType(), getNumSymbols(type));
}

void ScanOp::build(OpBuilder &builder, OperationState &state, ValueRange inits, ValueRange sequences, TypeRange stacked,
                   bool reverse, bool layers) {
  auto &properties = state.getOrAddProperties<Properties>();
  if (layers)
    properties.layers = builder.getUnitAttr();
  if (reverse)
    properties.reverse = builder.getUnitAttr();
  properties.operandSegmentSizes = {static_cast<int32_t>(inits.size()), static_cast<int32_t>(sequences.size())};
  properties.resultSegmentSizes = {static_cast<int32_t>(inits.size()), static_cast<int32_t>(stacked.size())};
  state.addOperands(inits);
  state.addOperands(sequences);
  state.addTypes(inits.getTypes());
  state.addTypes(stacked);
  SmallVector<Type> arguments(inits.getTypes());
  for (Value sequence : sequences)
    arguments.push_back(getSliceType(sequence.getType()));
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(state.addRegion(), {}, arguments, SmallVector<Location>(arguments.size(), state.location));
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types, stacked;
  auto parseOne = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()) || parser.parseColonType(types.emplace_back()));
  };
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  size_t carried = arguments.size();
  if (parser.parseKeyword("over") || parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne) ||
      parser.parseOptionalArrowTypeList(stacked))
    return failure();
  auto &properties = state.getOrAddProperties<Properties>();
  if (succeeded(parser.parseOptionalKeyword("reverse")))
    properties.reverse = parser.getBuilder().getUnitAttr();
  if (succeeded(parser.parseOptionalKeyword("layers")))
    properties.layers = parser.getBuilder().getUnitAttr();
  if (succeeded(parser.parseOptionalKeyword("until")))
    properties.until = parser.getBuilder().getUnitAttr();
  if (succeeded(parser.parseOptionalKeyword("ahead"))) {
    int64_t ahead = 0;
    if (parser.parseInteger(ahead))
      return failure();
    properties.ahead = parser.getBuilder().getI64IntegerAttr(ahead);
  }
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  for (auto [i, argument, type] : llvm::enumerate(arguments, types)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    argument.type = i < carried ? type : tensor ? getSliceType(tensor) : Type();
    if (!argument.type)
      return parser.emitError(location) << "scan: wrong type of a sequence; expected a tensor of rank 1 or more, got "
                                        << type;
  }
  properties.operandSegmentSizes = {static_cast<int32_t>(carried), static_cast<int32_t>(operands.size() - carried)};
  properties.resultSegmentSizes = {static_cast<int32_t>(carried), static_cast<int32_t>(stacked.size())};
  state.addTypes(ArrayRef(types).take_front(carried));
  state.addTypes(stacked);
  return failure(parser.resolveOperands(operands, types, location, state.operands) ||
                 parser.parseRegion(*state.addRegion(), arguments));
}

void ScanOp::print(OpAsmPrinter &printer) {
  auto printList = [&](auto arguments, ValueRange operands) {
    printer << '(';
    llvm::interleaveComma(llvm::zip_equal(arguments, operands), printer, [&](auto pair) {
      auto [argument, operand] = pair;
      printer << argument << " = " << operand << " : " << operand.getType();
    });
    printer << ") ";
  };
  printer << ' ';
  printList(getCarried(), getInits());
  printer << "over ";
  printList(getSlices(), getSequences());
  printStacked(printer, *this);
  if (getReverse())
    printer << "reverse ";
  if (getLayers())
    printer << "layers ";
  if (getUntil())
    printer << "until ";
  if (getAhead() > 0)
    printer << "ahead " << getAhead() << ' ';
  ArrayRef<NamedAttribute> extra = (*this)->getDiscardableAttrDictionary().getValue();
  if (!extra.empty()) {
    printer.printOptionalAttrDictWithKeyword(extra);
    printer << ' ';
  }
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===- each_sequence ---===//

AffineExpr BatchSymbols::getWhole(AffineExpr slice) const {
  MLIRContext *context = slice.getContext();
  if (isa<AffineConstantExpr>(slice))
    return canonicalExtent(slice * getAffineSymbolExpr(count, context));
  return own >= 0 && slice == getAffineSymbolExpr(own, context) ? getAffineSymbolExpr(rows, context) : AffineExpr();
}

RankedTensorType BatchSymbols::getWhole(RankedTensorType slice) const {
  if (slice.getRank() == 0 || !hasExtents(slice))
    return {};
  SmallVector<AffineExpr> extents = getExtents(slice);
  AffineExpr whole = getWhole(extents.front());
  if (!whole || !llvm::all_of(llvm::drop_begin(extents), llvm::IsaPred<AffineConstantExpr>))
    return {};
  extents.front() = whole;
  return getTensorType(extents, slice.getElementType(), std::max<int64_t>({getNumSymbols(slice), count + 1, rows + 1}));
}

unsigned EachSequenceOp::getNumCarried() { return 0; }
AffineExpr EachSequenceOp::getTripCount() { return getAffineSymbolExpr(getCount(), getContext()); }

std::optional<BatchSymbols> BatchSymbols::of(Operation *module) {
  auto positions = module->getAttrOfType<DenseI64ArrayAttr>(batchSymbolsAttrName);
  if (!positions || positions.size() != 3)
    return std::nullopt;
  const BatchSymbols symbols{positions[0], positions[1], positions[2]};
  const auto known = static_cast<int64_t>(getSymbols(module).size());
  const bool hasRows = symbols.rows >= 0 && symbols.own >= 0, hasNone = symbols.rows == -1 && symbols.own == -1;
  return symbols.count >= 0 && (hasRows || hasNone) && std::max({symbols.count, symbols.rows, symbols.own}) < known
             ? std::optional(symbols)
             : std::nullopt;
}

void BatchSymbols::write(Operation *module) const {
  module->setAttr(batchSymbolsAttrName, DenseI64ArrayAttr::get(module->getContext(), {count, rows, own}));
}

BatchSymbols EachSequenceOp::getBatchSymbols() {
  BatchSymbols symbols{static_cast<int64_t>(getCount()), -1, -1};
  if (std::optional<ArrayRef<int64_t>> rows = getRows(); rows && rows->size() == 2)
    std::tie(symbols.rows, symbols.own) = std::pair((*rows)[0], (*rows)[1]);
  return symbols;
}

void EachSequenceOp::build(OpBuilder &builder, OperationState &state, BatchSymbols symbols, ValueRange wholes,
                           TypeRange slices, TypeRange results) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.count = builder.getI64IntegerAttr(symbols.count);
  if (symbols.own >= 0)
    properties.rows = builder.getDenseI64ArrayAttr({symbols.rows, symbols.own});
  state.addOperands(wholes);
  state.addTypes(results);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(state.addRegion(), {}, slices, SmallVector<Location>(slices.size(), state.location));
}

ParseResult EachSequenceOp::parse(OpAsmParser &parser, OperationState &state) {
  int64_t count;
  if (parser.parseInteger(count))
    return failure();
  auto &properties = state.getOrAddProperties<Properties>();
  properties.count = parser.getBuilder().getI64IntegerAttr(count);
  if (succeeded(parser.parseOptionalKeyword("rows"))) {
    SmallVector<int64_t> rows;
    auto parseOne = [&] { return parser.parseInteger(rows.emplace_back()); };
    if (parser.parseEqual() || parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
      return failure();
    properties.rows = parser.getBuilder().getDenseI64ArrayAttr(rows);
  }
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types, results;
  auto parseSlice = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()) || parser.parseColonType(types.emplace_back()) ||
                   parser.parseKeyword("in") || parser.parseType(arguments.back().type));
  };
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseSlice) ||
      parser.parseOptionalArrowTypeList(results) || parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  state.addTypes(results);
  return failure(parser.resolveOperands(operands, types, location, state.operands) ||
                 parser.parseRegion(*state.addRegion(), arguments));
}

void EachSequenceOp::print(OpAsmPrinter &printer) {
  printer << ' ' << static_cast<int64_t>(getCount()) << ' ';
  if (std::optional<ArrayRef<int64_t>> rows = getRows()) {
    printer << "rows = [";
    llvm::interleaveComma(*rows, printer);
    printer << "] ";
  }
  printer << '(';
  llvm::interleaveComma(llvm::zip_equal(getBody().getArguments(), getWholes()), printer, [&](auto pair) {
    auto [slice, whole] = pair;
    printer << slice << " = " << whole << " : " << whole.getType() << " in " << slice.getType();
  });
  printer << ") ";
  printStacked(printer, *this);
  ArrayRef<NamedAttribute> extra = (*this)->getDiscardableAttrDictionary().getValue();
  if (!extra.empty()) {
    printer.printOptionalAttrDictWithKeyword(extra);
    printer << ' ';
  }
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// Whether the op is a widening cast.
static bool isWidening(Operation *op) {
  auto cast = dyn_cast_or_null<CastOp>(op);
  Type from = cast ? getElementTypeOrSelf(cast.getX().getType()) : Type(),
       to = cast ? getElementTypeOrSelf(cast) : Type();
  return cast && (isHalfFloat(from) || from.isInteger(8)) && isa<FloatType>(to) &&
         from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth();
}

bool isDecoding(Operation *op) {
  auto scaled = dyn_cast_or_null<MulOp>(op);
  if (!scaled)
    return isWidening(op);
  auto x = cast<RankedTensorType>(scaled->getOperand(0).getType()),
       scale = cast<RankedTensorType>(scaled->getOperand(1).getType());
  return isWidening(scaled->getOperand(0).getDefiningOp()) && x.getRank() == scale.getRank() && x.getRank() > 0 &&
         scale.getShape().back() == 1;
}

} // namespace mlir::kiln
