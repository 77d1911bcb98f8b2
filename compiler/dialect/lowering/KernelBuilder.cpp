// SPDX-License-Identifier: Apache-2.0
//
// Materialises the values that a kernel returns, in order, with everything on which they depend.
#include "compiler/dialect/lowering/KernelBuilder.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/KernelAttention.h"
#include "compiler/dialect/PartialIndex.h"
#include "compiler/dialect/lowering/SimplifyIndex.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::kiln {

bool isSupportedElement(Type type) {
  return isFloatingNumber(type) || type.isInteger(32) || type.isInteger(8) || type.isInteger(1);
}

AffineExpr countFlops(Value tensor, ArrayRef<AffineExpr> summed) {
  SmallVector<AffineExpr> factors = getExtents(cast<RankedTensorType>(tensor.getType()));
  llvm::append_range(factors, summed);
  factors.push_back(getAffineConstantExpr(2, tensor.getContext()));
  return getProduct(factors, tensor.getContext());
}

KernelBuilder::KernelBuilder(func::FuncOp kernel, bool isBatchInvariant)
    : kernel(kernel), isBatchInvariant(isBatchInvariant),
      builder(kernel.getLoc(), kernel.getBody().front().getTerminator()) {}

KernelBuilder::KernelBuilder(Operation *before)
    : kernel(before->getParentOfType<func::FuncOp>()), isBatchInvariant(false), builder(before->getLoc(), before) {}

LogicalResult KernelBuilder::run() {
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> sources;
  for (Operation &op : body.without_terminator()) {
    if (!isa<KernelOpInterface>(op))
      return op.emitError("operation: cannot be lowered; expected a decomposition to linalg");
    for (Value value : llvm::concat<Value>(SmallVector<Value>(op.getOperands()), SmallVector<Value>(op.getResults())))
      if (Type element = getElementTypeOrSelf(value.getType()); !element.isIndex() && !isSupportedElement(element))
        return op.emitError() << "operation: unsupported element type; expected f32, f16, bf16, i32, i8 or i1, got "
                              << element;
    sources.push_back(&op);
  }
  for (BlockArgument argument : body.getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      setTensor(argument, argument);

  Operation *terminator = body.getTerminator();
  SmallVector<Value> returned(terminator->getOperands());
  for (Operation *op : sources)
    for (Value result : op->getResults())
      if (llvm::is_contained(returned, result))
        materialize(result);
  for (OpOperand &operand : terminator->getOpOperands())
    operand.set(materialize(operand.get()));
  for (Operation *op : llvm::reverse(sources))
    op->erase();
  return success();
}

Value KernelBuilder::materialize(Value value) {
  if (Value tensor = getTensor(value))
    return tensor;
  Operation *op = value.getDefiningOp();
  Operation *stored = isa<ReshapeOp>(op) ? cast<ReshapeOp>(op).getX().getDefiningOp() : op;
  if (stored && !cast<KernelOpInterface>(stored).isLazy()) { // its decomposition may store this very value
    (void)getIntermediates(stored);
    if (Value tensor = getTensor(value))
      return tensor;
  }
  auto type = cast<RankedTensorType>(value.getType());
  Value tensor = createParallel(getExtents(type), type.getElementType(),
                                [&](ElementBuilder &element) { return element.evaluate(value, element.loops()); });
  setTensor(value, tensor);
  return tensor;
}

void KernelBuilder::prepareRepeatedReads(Value value) {
  Value source = value;
  while (!getTensor(source)) {
    Operation *op = source.getDefiningOp();
    if (!hasRole(op, KernelRole::Movement) && !hasRole(op, KernelRole::View) && !isDecoding(op)) {
      materialize(value);
      return;
    }
    if (isDecoding(op) && op->getNumOperands() > 1)
      prepareRepeatedReads(op->getOperand(1));
    source = op->getOperand(0);
  }
}

ArrayRef<Value> KernelBuilder::getIntermediates(Operation *op) {
  if (auto found = intermediates.find(op); found != intermediates.end())
    return found->second;
  SmallVector<Value> values = cast<KernelOpInterface>(op).decompose(*this);
  return intermediates[op] = std::move(values);
}

Value KernelBuilder::createConstant(TypedAttr value) {
  Value &constant = constants[value];
  if (!constant) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&kernel.getBody().front());
    if (constants.size() > 1)
      builder.setInsertionPointAfterValue(std::prev(constants.end(), 2)->second);
    constant = arith::ConstantOp::create(builder, value);
  }
  return constant;
}

Value KernelBuilder::createConstant(Type type, double value) {
  if (isa<FloatType>(type))
    return createConstant(builder.getFloatAttr(type, value));
  return createConstant(builder.getIntegerAttr(type, static_cast<int64_t>(value)));
}

/// Values of extents in the kernel function. Each sum, product and quotient is created once.
struct KernelBuilder::ExtentArithmetic {
  using Value = mlir::Value;
  KernelBuilder &kernel;

  Value constant(int64_t number) { return kernel.createConstant(kernel.builder.getIndexAttr(number)); }
  Value dim(unsigned) { llvm_unreachable("extents are expressions over symbols"); }
  Value symbol(unsigned position) { return kernel.kernel.getArgument(position); }
  Value add(Value a, Value b) { return createOnce<arith::AddIOp>(kernel.extentSums, a, b); }
  Value multiply(Value a, Value b) { return createOnce<arith::MulIOp>(kernel.extentProducts, a, b); }
  Value floorDivide(Value a, Value b) { return createOnce<arith::DivUIOp>(kernel.extentQuotients, a, b); }
  Value ceilDivide(Value, Value) { llvm_unreachable("canonical extents round down"); }
  Value modulo(Value, Value) { llvm_unreachable("no extent is a remainder"); }

private:
  template <typename Op> Value createOnce(ExtentValues &known, Value a, Value b) {
    Value &value = known[{a, b}];
    if (!value)
      value = Op::create(kernel.builder, a, b);
    return value;
  }
};

Value KernelBuilder::createExtent(AffineExpr extent) { return evaluateAffine(extent, ExtentArithmetic{*this}); }

int64_t KernelBuilder::largestProduct(ArrayRef<AffineExpr> extents) {
  auto bounds = getBounds(getProduct(extents, getContext()), getSymbolBounds(kernel));
  return bounds ? bounds->max : std::numeric_limits<int64_t>::max();
}

Value KernelBuilder::createEmpty(ArrayRef<AffineExpr> extents, Type element) {
  SmallVector<Value> sizes;
  for (AffineExpr extent : extents)
    if (!isa<AffineConstantExpr>(extent))
      sizes.push_back(createExtent(extent));
  return tensor::EmptyOp::create(builder, getTensorType(extents, element, getNumSymbols()), sizes);
}

Value KernelBuilder::createParallel(ArrayRef<AffineExpr> extents, Type element,
                                    function_ref<Value(ElementBuilder &)> body) {
  Value output = createEmpty(extents, element);
  return createGeneric(extents, {}, output, [&](ElementBuilder &builder, ValueRange) {
    return SmallVector<Value>{builder.cut(body(builder), element)};
  })[0];
}

Value KernelBuilder::createConverted(Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType() == element)
    return tensor;
  return createParallel(getExtents(type), element,
                        [&](ElementBuilder &b) { return b.convert(b.load(tensor, b.loops()), element); });
}

SmallVector<Value> KernelBuilder::createReduction(ArrayRef<AffineExpr> extents, ArrayRef<unsigned> reduced,
                                                  ArrayRef<TypedAttr> initial,
                                                  function_ref<SmallVector<Value>(ElementBuilder &, ValueRange)> body) {
  SmallVector<AffineExpr> kept;
  for (auto [i, extent] : llvm::enumerate(extents))
    if (!llvm::is_contained(reduced, i))
      kept.push_back(extent);
  SmallVector<Value> outputs;
  for (TypedAttr value : initial)
    outputs.push_back(
        linalg::FillOp::create(builder, createConstant(value), createEmpty(kept, value.getType())).getResult(0));
  return createGeneric(extents, reduced, outputs, body);
}

SmallVector<Value> KernelBuilder::createGeneric(ArrayRef<AffineExpr> extents, ArrayRef<unsigned> reduced,
                                                ArrayRef<Value> outputs,
                                                function_ref<SmallVector<Value>(ElementBuilder &, ValueRange)> body) {
  unsigned loops = extents.size();
  SmallVector<AffineExpr> written;
  SmallVector<utils::IteratorType> iterators;
  for (unsigned i = 0; i < loops; ++i) {
    bool isReduced = llvm::is_contained(reduced, i);
    iterators.push_back(isReduced ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    if (!isReduced)
      written.push_back(builder.getAffineDimExpr(i));
  }

  auto block = std::make_unique<Block>();
  ElementBuilder element(*this, block.get(), extents);
  SmallVector<Value> accumulators;
  for (Value output : outputs)
    accumulators.push_back(block->addArgument(getElementTypeOrSelf(output.getType()), builder.getLoc()));
  linalg::YieldOp::create(element, body(element, accumulators));

  // An operand used only for its shape provides the extent of a reduction loop that is a dimension of no input.
  for (unsigned i : reduced) {
    AffineExpr loop = builder.getAffineDimExpr(i);
    if (llvm::none_of(element.maps, [&](AffineMap map) { return llvm::is_contained(map.getResults(), loop); })) {
      element.inputs.push_back(createEmpty(extents[i], accumulators[0].getType()));
      element.maps.push_back(AffineMap::get(loops, 0, loop));
      block->insertArgument(element.inputs.size() - 1, accumulators[0].getType(), builder.getLoc());
    }
  }

  SmallVector<AffineMap> maps = element.maps;
  maps.append(outputs.size(), AffineMap::get(loops, 0, written, getContext()));
  auto generic =
      linalg::GenericOp::create(builder, TypeRange(ValueRange(outputs)), element.inputs, outputs, maps, iterators);
  generic.getRegion().push_back(block.release());
  return SmallVector<Value>(generic.getResults());
}

ElementRegion KernelBuilder::createRegion(ArrayRef<AffineExpr> extents, ArrayRef<Type> last,
                                          function_ref<SmallVector<Value>(ElementBuilder &, ValueRange)> body) {
  ElementRegion region;
  region.block = std::make_unique<Block>();
  ElementBuilder element(*this, region.block.get(), extents, /*isOfAttention=*/true);
  SmallVector<Value> arguments;
  for (Type type : last)
    arguments.push_back(region.block->addArgument(type, builder.getLoc()));
  KernelYieldOp::create(element, body(element, arguments));
  region.inputs = std::move(element.inputs);
  region.maps = std::move(element.maps);
  return region;
}

ElementBuilder::ElementBuilder(KernelBuilder &kernel, Block *block, ArrayRef<AffineExpr> extents, bool isOfAttention)
    : ImplicitLocOpBuilder(kernel.builder.getLoc(), kernel.getContext()), kernel(kernel), extents(extents),
      block(block), isOfAttention(isOfAttention) {
  setInsertionPointToEnd(block);
  for (AffineExpr extent : extents) {
    auto constant = dyn_cast<AffineConstantExpr>(extent);
    ranges.push_back(constant ? std::optional(constant.getValue()) : std::nullopt);
  }
}

Coordinates ElementBuilder::loops() {
  Coordinates result;
  for (unsigned i = 0; i < extents.size(); ++i)
    result.push_back(loop(i));
  return result;
}

AffineExpr ElementBuilder::simplify(AffineExpr expr) { return simplifyIndex(expr, ranges); }

Value ElementBuilder::read(Value value, ArrayRef<Coordinate> at) {
  if (Value tensor = kernel.getTensor(value))
    return load(tensor, at);
  auto key = std::pair(value.getAsOpaquePointer(), std::vector<Coordinate>(at.begin(), at.end()));
  if (auto known = read_.find(key); known != read_.end())
    return known->second;

  Value result = evaluate(value, at);
  Operation *op = value.getDefiningOp();
  const Type stored = getElementTypeOrSelf(value.getType());
  if (kernel.isBatchInvariant && isHalfFloat(stored) && !hasRole(op, KernelRole::Movement) &&
      !hasRole(op, KernelRole::View))
    result = convert(cut(result, stored), stored);
  read_[key] = result;
  return result;
}

Value ElementBuilder::evaluate(Value value, ArrayRef<Coordinate> at) {
  return cast<KernelOpInterface>(value.getDefiningOp()).evaluateElement(*this, at);
}

Value ElementBuilder::cut(Value x, Type type) {
  Type from = x.getType();
  if (from == type)
    return x;
  const bool isWidened = from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth();
  if (isa<FloatType>(type))
    return isWidened ? Value(arith::ExtFOp::create(*this, type, x)) : Value(arith::TruncFOp::create(*this, type, x));
  return isWidened ? Value(arith::ExtSIOp::create(*this, type, x)) : Value(arith::TruncIOp::create(*this, type, x));
}

Value ElementBuilder::load(Value tensor, ArrayRef<Coordinate> at) {
  return convert(loadStored(tensor, at), getElementTypeOrSelf(tensor.getType()));
}

Value ElementBuilder::loadStored(Value tensor, ArrayRef<Coordinate> at) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<AffineExpr> stored = getExtents(type), exprs;
  bool isMap = true;
  for (auto [coordinate, extent] : llvm::zip_equal(at, stored)) {
    if (!coordinate.expr) {
      isMap = false;
      break;
    }
    // A loop of extent 1 is kept, too, so that targets recognise the structure.
    auto isWhole = [&](AffineExpr expr) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      return loop && extents[loop.getPosition()] == extent;
    };
    exprs.push_back(isWhole(coordinate.expr) ? coordinate.expr : simplify(coordinate.expr));
    if (isa<AffineDimExpr>(exprs.back()) && !isWhole(exprs.back()))
      exprs.back() = getPartialIndex(exprs.back());
  }
  if (!isMap) {
    SmallVector<Value> indices;
    for (const Coordinate &coordinate : at)
      indices.push_back(toIndex(coordinate));
    return tensor::ExtractOp::create(*this, tensor, indices);
  }
  return loadAt(tensor, AffineMap::get(extents.size(), 0, exprs, getContext()));
}

Value ElementBuilder::loadAt(Value tensor, AffineMap map) {
  for (unsigned i = 0; i < inputs.size(); ++i)
    if (inputs[i] == tensor && maps[i] == map)
      return block->getArgument(i);
  inputs.push_back(tensor);
  maps.push_back(map);
  return block->insertArgument(inputs.size() - 1, getElementTypeOrSelf(tensor.getType()), getLoc());
}

SmallVector<Value> ElementBuilder::copyRegion(Region &region, ValueRange inputs, ArrayAttr maps,
                                              ArrayRef<unsigned> loops, ValueRange last) {
  SmallVector<AffineExpr> dims;
  for (unsigned loop : loops)
    dims.push_back(getAffineDimExpr(loop));
  Block &from = region.front();
  IRMapping mapping;
  for (auto [argument, input, map] : llvm::zip(from.getArguments(), inputs, maps.getAsRange<AffineMapAttr>()))
    mapping.map(argument, loadAt(input, map.getValue().replaceDimsAndSymbols(dims, {}, extents.size(), 0)));
  mapping.map(from.getArguments().take_back(last.size()), last);
  for (Operation &op : from.without_terminator()) {
    if (auto index = dyn_cast<KernelIndexOp>(op))
      mapping.map(index.getResult(), linalg::IndexOp::create(*this, loops[index.getLoop()]).getResult());
    else
      clone(op, mapping);
  }
  return llvm::map_to_vector(from.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Negative numbers have bits of at most those of -infinity, as signed integers; NaNs with a sign bit are above.
Value ElementBuilder::toOrder(Value x) {
  auto integer = [&](int32_t value) { return kernel.createConstant(getI32IntegerAttr(value)); };
  Value bits = arith::BitcastOp::create(*this, getI32Type(), x);
  Value magnitude = arith::AndIOp::create(*this, bits, integer(0x7fffffff));
  Value isNegative = arith::CmpIOp::create(*this, arith::CmpIPredicate::sle, bits, integer(int32_t(0xff800000)));
  Value negated = arith::SubIOp::create(*this, integer(0), magnitude);
  return arith::SelectOp::create(*this, isNegative, negated, magnitude);
}

Value ElementBuilder::fromOrder(Value order) {
  auto integer = [&](int32_t value) { return kernel.createConstant(getI32IntegerAttr(value)); };
  Value isNegative = arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, order, integer(0));
  Value magnitude = arith::SubIOp::create(*this, integer(0), order);
  Value negative = arith::OrIOp::create(*this, magnitude, integer(std::numeric_limits<int32_t>::min()));
  Value bits = arith::SelectOp::create(*this, isNegative, negative, order);
  return arith::BitcastOp::create(*this, getF32Type(), bits);
}

Value ElementBuilder::expBelow(Value x, Value max) {
  auto exp = math::ExpOp::create(*this, Value(arith::SubFOp::create(*this, x, max)));
  exp->setAttr(nonpositiveAttrName, getUnitAttr());
  return exp;
}

Coordinate ElementBuilder::shift(const Coordinate &coordinate, int64_t by) {
  if (by == 0)
    return coordinate;
  if (coordinate.expr)
    return coordinate.expr + by;
  return Value(arith::AddIOp::create(*this, coordinate.value, kernel.createConstant(getIndexAttr(by))));
}

Value ElementBuilder::toIndex(const Coordinate &coordinate) {
  return coordinate.expr ? expand(simplify(coordinate.expr)) : coordinate.value;
}

/// Indices in the region, made of sums, products, floordiv and mod over its loops.
struct ElementBuilder::IndexArithmetic {
  using Value = mlir::Value;
  ElementBuilder &b;

  Value constant(int64_t number) { return b.kernel.createConstant(b.getIndexAttr(number)); }
  Value dim(unsigned position) {
    return b.isOfAttention ? Value(KernelIndexOp::create(b, position)) : Value(linalg::IndexOp::create(b, position));
  }
  Value symbol(unsigned) { llvm_unreachable("indices are expressions over loops"); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value multiply(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value floorDivide(Value x, Value y) { return arith::DivSIOp::create(b, x, y); } // operands are never negative
  Value ceilDivide(Value, Value) { llvm_unreachable("an index is made of sums, products, floordiv and mod"); }
  Value modulo(Value x, Value y) { return arith::RemSIOp::create(b, x, y); }
};

Value ElementBuilder::expand(AffineExpr expr) { return evaluateAffine(expr, IndexArithmetic{*this}); }

} // namespace mlir::kiln
