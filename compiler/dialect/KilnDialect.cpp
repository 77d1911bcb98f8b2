// SPDX-License-Identifier: Apache-2.0
//
// Registration, and the text and construction of the ops that ODS does not write.
#include "compiler/dialect/KilnDialect.h"

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

#define GET_OP_CLASSES
#include "compiler/dialect/KilnOps.cpp.inc"
#pragma GCC diagnostic pop

namespace mlir::kiln {

void KilnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/KilnAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/KilnOps.cpp.inc"
      >();
}

Operation *KilnDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, location, elements);
}

void ParameterOp::build(OpBuilder &builder, OperationState &state, Type type, ArrayRef<StringRef> sources,
                        int64_t copies) {
  build(builder, state, type, builder.getStrArrayAttr(sources), copies, DenseI64ArrayAttr(), 0);
}

YieldOp RepeatOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

void RepeatOp::build(OpBuilder &builder, OperationState &state, int64_t count, ValueRange inits,
                     function_ref<void(OpBuilder &, Location, ValueRange)> buildBody) {
  state.getOrAddProperties<Properties>().count = builder.getI64IntegerAttr(count);
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  Region *body = state.addRegion();
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locations(inits.size(), state.location);
  Block *block = builder.createBlock(body, {}, inits.getTypes(), locations);
  if (buildBody)
    buildBody(builder, state.location, block->getArguments());
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
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseCarried) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  SmallVector<Type> types = llvm::map_to_vector(arguments, [](auto &argument) { return argument.type; });
  state.addTypes(types);
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
  SmallVector<NamedAttribute> extra = llvm::filter_to_vector(
      (*this)->getAttrs(), [&](NamedAttribute attribute) { return attribute.getName() != getCountAttrName(); });
  if (!extra.empty()) {
    printer.printOptionalAttrDictWithKeyword(extra);
    printer << ' ';
  }
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

} // namespace mlir::kiln
