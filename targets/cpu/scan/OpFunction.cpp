// SPDX-License-Identifier: Apache-2.0
//
// The innermost loop is one along which most operands are contiguous or constant. If it is a reduction, accumulators
// are in registers; otherwise they are in the memory of the results.
#include "targets/cpu/scan/OpFunction.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/kernel/KernelFunction.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln::cpu {

using namespace mlir;

Value IndexBuilder::evaluate(AffineExpr expr, ArrayRef<Value> loops, ArrayRef<Value> symbols) {
  struct Arithmetic : mlir::kiln::AffineOperands<mlir::Value> {
    IndexBuilder &b;
    mlir::Value constant(int64_t number) { return b.number(number); }
    mlir::Value add(mlir::Value x, mlir::Value y) { return b.plus(x, y); }
    mlir::Value multiply(mlir::Value x, mlir::Value y) { return b.times(x, y); }
    mlir::Value floorDivide(mlir::Value x, mlir::Value y) { return b.dividedBy(x, y); }
    mlir::Value ceilDivide(mlir::Value x, mlir::Value y) { return b.roundedUp(x, y); }
    mlir::Value modulo(mlir::Value x, mlir::Value y) { return b.createOrFold<arith::RemUIOp>(x, y); }
  };
  return mlir::kiln::evaluateAffine(expr, Arithmetic{{loops, symbols}, *this});
}

Value IndexBuilder::address(Value base, Type element, Value index) {
  return LLVM::GEPOp::create(*this, pointer(), storedType(element), base, ArrayRef<LLVM::GEPArg>{index});
}

Type storedType(Type element) {
  return element.isInteger(1) ? Type(IntegerType::get(element.getContext(), 8)) : element;
}

OpFunction::OpFunction(ModuleOp module, StringRef name, unsigned pointers, unsigned numSymbols,
                       const ScanMachine &machine)
    : b(module.getLoc(), module.getContext()), machine(machine) {
  b.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> types(pointers, b.pointer());
  types.append(2 + numSymbols, b.getI64Type());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), types);
  function = LLVM::LLVMFuncOp::create(b, name, type, LLVM::Linkage::Internal);
  SmallVector<Attribute> attributes{b.getStringAttr("noinline"), b.getStringAttr("nounwind")};
  if (machine.vectorBytes > 32)
    attributes.push_back(b.getStrArrayAttr({"prefer-vector-width", std::to_string(8 * machine.vectorBytes)}));
  function.setPassthroughAttr(b.getArrayAttr(attributes));
  for (unsigned i = 0; i < pointers; ++i)
    function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  Block *body = function.addEntryBlock(b);
  b.setInsertionPointToStart(body);
  first = body->getArgument(pointers);
  count = body->getArgument(pointers + 1);
  for (unsigned i = 0; i < numSymbols; ++i)
    symbols.push_back(body->getArgument(pointers + 2 + i));
  LLVM::ReturnOp::create(b, ValueRange());
  b.setInsertionPoint(body->getTerminator());
}

Value OpFunction::addressOf(const Memory &memory, AffineMap map, ArrayRef<Value> loops) {
  const Layout &layout = memory.layout;
  SmallVector<AffineExpr> extents = mlir::kiln::getExtents(layout.type);
  Value index = b.number(0);
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    Value here = b.evaluate(expr, loops, symbols);
    Value extent = b.evaluate(extents[axis], {}, symbols);
    if (layout.blocked == unsigned(axis)) {
      here = b.minus(here, first);
      extent = b.number(layout.room);
    }
    index = b.plus(b.times(index, extent), here);
  }
  return b.address(function.getArgument(memory.pointer), layout.type.getElementType(), index);
}

Value OpFunction::load(const Memory &memory, AffineMap map, ArrayRef<Value> loops) {
  Type element = memory.layout.type.getElementType();
  Value value = LLVM::LoadOp::create(b, storedType(element), addressOf(memory, map, loops));
  return element.isInteger(1) ? b.createOrFold<arith::TruncIOp>(element, value) : value;
}

void OpFunction::store(Value value, const Memory &memory, AffineMap map, ArrayRef<Value> loops) {
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(b, b.getI8Type(), value);
  LLVM::StoreOp::create(b, value, addressOf(memory, map, loops));
}

Value OpFunction::constant(TypedAttr value) {
  if (value.getType().isIndex())
    return b.number(cast<IntegerAttr>(value).getInt());
  return arith::ConstantOp::create(b, value);
}

Value OpFunction::upperOf(AffineExpr extent, bool isDivided) {
  return isDivided ? b.plus(first, count) : b.evaluate(extent, {}, symbols);
}

SmallVector<Value> OpFunction::nest(ArrayRef<unsigned> order, ArrayRef<AffineExpr> extents,
                                    std::optional<unsigned> divided, SmallVector<Value> &loops, ArrayRef<Value> carried,
                                    function_ref<SmallVector<Value>(ArrayRef<Value>)> body) {
  if (order.empty())
    return body(carried);
  const unsigned loop = order.front();
  const bool isDivided = divided == loop;
  Value lower = isDivided ? first : b.number(0), upper = upperOf(extents[loop], isDivided);
  auto each = scf::ForOp::create(b, lower, upper, b.number(1), carried);
  OpBuilder::InsertionGuard guard(b);
  Block *block = each.getBody();
  if (carried.empty())
    b.setInsertionPoint(block->getTerminator());
  else
    b.setInsertionPointToEnd(block);
  loops[loop] = each.getInductionVar();
  SmallVector<Value> arguments(each.getRegionIterArgs());
  SmallVector<Value> results = nest(order.drop_front(), extents, divided, loops, arguments, body);
  if (!carried.empty())
    scf::YieldOp::create(b, results);
  return SmallVector<Value>(each.getResults());
}

/// Returns how well a loop is the innermost one: operands that are contiguous or constant along it, minus others.
static int scoreOf(linalg::GenericOp op, unsigned loop) {
  int score = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = mlir::kiln::withoutPartial(op.getMatchingIndexingMap(&operand));
    const bool isUsed = map.isFunctionOfDim(loop);
    const bool isLast =
        isUsed && map.getNumResults() > 0 && map.getResults().back() == getAffineDimExpr(loop, op.getContext());
    bool isElsewhere = false;
    for (AffineExpr index : map.getResults().drop_back(map.getNumResults() > 0 ? 1 : 0))
      isElsewhere |= index.isFunctionOfDim(loop);
    score += !isUsed || (isLast && !isElsewhere) ? 1 : -1;
  }
  return score;
}

static unsigned innermostLoop(linalg::GenericOp op, ArrayRef<AffineExpr> extents) {
  std::optional<unsigned> best;
  int bestScore = 0;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    const bool isShort =
        isa<AffineConstantExpr>(extents[loop]) && cast<AffineConstantExpr>(extents[loop]).getValue() < 4;
    const bool isParallel = op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel;
    const int score = 4 * scoreOf(op, loop) + (isParallel ? 1 : 0) - (isShort ? 100 : 0);
    if (!best || score >= bestScore) {
      best = loop;
      bestScore = score;
    }
  }
  return *best;
}

void OpFunction::compute(linalg::GenericOp op, ArrayRef<Memory> operands, ArrayRef<Memory> results,
                         std::optional<unsigned> divided) {
  isOrdered = isBatchInvariant(op);
  const SmallVector<AffineExpr> extents = loopExtents(op);
  SmallVector<unsigned> parallel, reduced;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    (type == utils::IteratorType::parallel ? parallel : reduced).push_back(loop);
  SmallVector<Value> loops(op.getNumLoops());
  SmallVector<AffineMap> maps;
  for (OpResult result : op->getResults())
    maps.push_back(op.getIndexingMapMatchingResult(result));
  auto storeAll = [&](ArrayRef<Value> values) {
    for (auto [value, memory, map] : llvm::zip_equal(values, results, maps))
      store(value, memory, map, loops);
    return SmallVector<Value>();
  };
  auto initial = [&] {
    SmallVector<Value> values;
    for (Value output : op.getDpsInits()) {
      auto fill = output.getDefiningOp<linalg::FillOp>();
      values.push_back(constant(cast<TypedAttr>(fill.getInputs()[0].getDefiningOp<arith::ConstantOp>().getValue())));
    }
    return values;
  };
  const unsigned inner = op.getNumLoops() ? innermostLoop(op, extents) : 0;
  if (reduced.empty()) {
    llvm::erase(parallel, inner);
    if (op.getNumLoops())
      parallel.push_back(inner);
    // The initial value of an element is not read, except by regions that ignore it.
    nest(parallel, extents, divided, loops, {},
         [&](ArrayRef<Value>) { return storeAll(evaluate(op, operands, loops, {})); });
    return;
  }
  if (llvm::is_contained(reduced, inner)) {
    llvm::erase(reduced, inner);
    reduced.push_back(inner);
    nest(parallel, extents, divided, loops, {}, [&](ArrayRef<Value>) {
      SmallVector<Value> sums = nest(reduced, extents, divided, loops, initial(), [&](ArrayRef<Value> accumulators) {
        return evaluate(op, operands, loops, accumulators);
      });
      return storeAll(sums);
    });
    return;
  }
  llvm::erase(parallel, inner);
  nest(parallel, extents, divided, loops, {}, [&](ArrayRef<Value>) {
    nest(inner, extents, divided, loops, {}, [&](ArrayRef<Value>) { return storeAll(initial()); });
    SmallVector<unsigned> order(reduced);
    order.push_back(inner);
    return nest(order, extents, divided, loops, {}, [&](ArrayRef<Value>) {
      SmallVector<Value> accumulators;
      for (auto [memory, map] : llvm::zip_equal(results, maps))
        accumulators.push_back(load(memory, map, loops));
      return storeAll(evaluate(op, operands, loops, accumulators));
    });
  });
}

void OpFunction::copy(const Memory &from, const Memory &to, std::optional<unsigned> divided) {
  const SmallVector<AffineExpr> extents = mlir::kiln::getExtents(to.layout.type);
  const auto map = AffineMap::getMultiDimIdentityMap(extents.size(), b.getContext());
  SmallVector<Value> loops(extents.size());
  nest(llvm::to_vector(llvm::seq<unsigned>(0, extents.size())), extents, divided, loops, {}, [&](ArrayRef<Value>) {
    store(load(from, map, loops), to, map, loops);
    return SmallVector<Value>();
  });
}

void OpFunction::fill(TypedAttr value, const Memory &to, std::optional<unsigned> divided) {
  const SmallVector<AffineExpr> extents = mlir::kiln::getExtents(to.layout.type);
  const auto map = AffineMap::getMultiDimIdentityMap(extents.size(), b.getContext());
  SmallVector<Value> loops(extents.size());
  nest(llvm::to_vector(llvm::seq<unsigned>(0, extents.size())), extents, divided, loops, {}, [&](ArrayRef<Value>) {
    store(constant(value), to, map, loops);
    return SmallVector<Value>();
  });
}

SmallVector<Value> OpFunction::evaluate(linalg::GenericOp op, ArrayRef<Memory> operands, ArrayRef<Value> loops,
                                        ArrayRef<Value> accumulators) {
  llvm::DenseMap<Value, Value> values;
  Block *body = op.getBody();
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = body->getArgument(input->getOperandNumber());
    if (!argument.use_empty())
      values[argument] = load(operands[input->getOperandNumber()], op.getMatchingIndexingMap(input), loops);
  }
  for (auto [argument, value] : llvm::zip(op.getRegionOutputArgs(), accumulators))
    values[argument] = value;
  for (Operation &inner : body->without_terminator())
    values[inner.getResult(0)] = clone(inner, loops, values);
  SmallVector<Value> results;
  for (Value value : body->getTerminator()->getOperands()) {
    if (auto outside = value.getDefiningOp<arith::ConstantOp>(); outside && !values.contains(value))
      values[value] = constant(cast<TypedAttr>(outside.getValue()));
    results.push_back(values.at(value));
  }
  return results;
}

/// Sums of products may be fused and, if their order is free, reassociated, so that they can be vectorised.
Value OpFunction::cloneFloat(Operation &op, ArrayRef<Value> operands) {
  auto generic = dyn_cast<linalg::GenericOp>(op.getParentOp());
  if (!generic)
    return {};
  auto isSum = [&](Operation *sum) {
    return isa<arith::AddFOp>(sum) && !sum->hasAttr(mlir::kiln::strictAttrName) &&
           llvm::any_of(sum->getOperands(),
                        [&](Value x) { return llvm::is_contained(generic.getRegionOutputArgs(), x); });
  };
  if (auto add = dyn_cast<arith::AddFOp>(op); add && isSum(add)) {
    auto flags = arith::FastMathFlags::contract;
    if (!isOrdered)
      flags = flags | arith::FastMathFlags::reassoc;
    return arith::AddFOp::create(b, operands[0], operands[1], flags);
  }
  auto multiply = dyn_cast<arith::MulFOp>(op);
  if (multiply && !op.hasAttr(mlir::kiln::strictAttrName) && op.getResult(0).hasOneUse() &&
      isSum(*op.getResult(0).getUsers().begin()))
    return arith::MulFOp::create(b, operands[0], operands[1], arith::FastMathFlags::contract);
  return {};
}

Value OpFunction::clone(Operation &op, ArrayRef<Value> loops, llvm::DenseMap<Value, Value> &values) {
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return loops[index.getDim()];
  if (auto number = dyn_cast<arith::ConstantOp>(op))
    return constant(cast<TypedAttr>(number.getValue()));
  SmallVector<Value> operands;
  for (Value operand : op.getOperands()) {
    auto found = values.find(operand);
    if (found != values.end()) {
      operands.push_back(found->second);
      continue;
    }
    // From outside of the region: constants, symbols, and what is computed from these.
    Operation *source = operand.getDefiningOp();
    operands.push_back(source ? clone(*source, loops, values) : symbols[cast<BlockArgument>(operand).getArgNumber()]);
  }
  if (Value sum = cloneFloat(op, operands))
    return sum;
  if (isa<math::FmaOp>(op) && !machine.hasFusedMultiplyAdd)
    return arith::AddFOp::create(b, arith::MulFOp::create(b, operands[0], operands[1]).getResult(), operands[2]);
  // An index is an i64.
  if (isa<arith::IndexCastOp>(op)) {
    Type from = operands[0].getType(), to = op.getResult(0).getType();
    if (to.isIndex())
      to = b.getI64Type();
    if (from == to)
      return operands[0];
    return from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth()
               ? Value(arith::ExtSIOp::create(b, to, operands[0]))
               : Value(arith::TruncIOp::create(b, to, operands[0]));
  }
  OperationState state(op.getLoc(), op.getName());
  state.addOperands(operands);
  for (Type type : op.getResultTypes())
    state.addTypes(type.isIndex() ? Type(b.getI64Type()) : type);
  state.propertiesAttr = op.getPropertiesAsAttribute();
  return b.create(state)->getResult(0);
}

} // namespace kiln::cpu
