// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/ptx/ElementEmitter.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "targets/cuda/Kernel.h"
#include "targets/cuda/ptx/Combiner.h"
#include "targets/cuda/ptx/ScalarOps.h"
#include "targets/cuda/tile/Shared.h"
#include <cmath>

namespace kiln::cuda {

using namespace mlir;
using mlir::kiln::getExtents;
using tile::Values;

//===- Parameters and extents --------------------------------------------===//

Value ElementEmitter::parameter(const Parameter &parameter) {
  auto known = llvm::find(parameters, parameter);
  if (known != parameters.end())
    return addresses[known - parameters.begin()];
  const KernelFunction view(kernel);
  const bool isArgument = parameter.kind == Parameter::Tensor && parameter.number < int64_t(view.tensors().size());
  tile::Access access = isArgument && !placement.isInPlace(parameter) ? tile::Access::Read : tile::Access::Any;
  if (access == tile::Access::Read && view.isWeight(unsigned(parameter.number)))
    access = tile::Access::Weight;
  parameters.push_back(parameter);
  addresses.push_back(b.addParameter(parameter.kind == Parameter::Symbol ? b.getI32Type() : b.pointer(), access));
  return addresses.back();
}

Value ElementEmitter::tensorMap(int64_t number) {
  parameters.push_back({Parameter::Map, number});
  addresses.push_back(b.addTensorMap());
  return addresses.back();
}

Value ElementEmitter::extent(AffineExpr extent) { return affine(extent, {}, {}); }

namespace {

/// An i32, and whether it cannot be negative if no loop and symbol is.
struct Index {
  Value value;
  bool isNatural = true;
};

struct IndexArithmetic {
  using Value = Index;
  tile::Builder &b;
  function_ref<mlir::Value(unsigned)> dims, symbols;

  Index constant(int64_t number) { return {b.integer(number), number >= 0}; }
  Index dim(unsigned position) { return {dims(position)}; }
  Index symbol(unsigned position) { return {symbols(position)}; }
  Index add(Index x, Index y) { return {b.add(x.value, y.value), x.isNatural && y.isNatural}; }
  Index multiply(Index x, Index y) { return {b.mul(x.value, y.value), x.isNatural && y.isNatural}; }
  /// Rounds down; the divisor is positive.
  Index floorDivide(Index x, Index y) {
    const bool isNatural = x.isNatural && y.isNatural;
    if (x.isNatural)
      return {b.div(x.value, y.value), isNatural};
    mlir::Value quotient = b.createOrFold<arith::DivSIOp>(x.value, y.value),
                rest = b.createOrFold<arith::RemSIOp>(x.value, y.value);
    mlir::Value isBelow = b.compare(arith::CmpIPredicate::slt, rest, b.integer(0));
    return {b.sub(quotient, b.createOrFold<arith::ExtUIOp>(b.getI32Type(), isBelow)), isNatural};
  }
  Index ceilDivide(Index x, Index y) {
    return floorDivide({b.add(x.value, b.sub(y.value, b.integer(1))), x.isNatural}, y);
  }
  Index modulo(Index x, Index y) {
    return {b.sub(x.value, b.mul(floorDivide(x, y).value, y.value)), x.isNatural && y.isNatural};
  }
};

} // namespace

/// If `symbols` is empty, the expression's symbols are the kernel's own.
Value ElementEmitter::affine(AffineExpr expr, ArrayRef<Value> dims, ArrayRef<Value> symbols) {
  auto dim = [&](unsigned position) { return dims[position]; };
  auto symbol = [&](unsigned position) { return symbols.empty() ? this->symbol(position) : symbols[position]; };
  return mlir::kiln::evaluateAffine(expr, IndexArithmetic{b, dim, symbol}).value;
}

/// Returns an offset in elements, as i64 if the offsets of the largest tensor do not fit i32.
Value ElementEmitter::offset(RankedTensorType type, ArrayRef<Value> at) {
  const bool isWide = mostElements(type, kernel) > std::numeric_limits<int32_t>::max();
  auto fit = [&](Value x) { return isWide ? b.widen(x) : x; };
  Value result;
  for (auto [coordinate, size] : llvm::zip_equal(at, getExtents(type)))
    result = result ? b.add(b.mul(result, fit(extent(size))), fit(coordinate)) : fit(coordinate);
  return result ? result : b.integer(0);
}

//===- Elements ----------------------------------------------------------===//

/// Whether values of the block are available at the builder's insertion point.
static bool isAround(Block *block, tile::Builder &b) {
  for (Block *inner = b.getInsertionBlock(); inner; inner = inner->getParentOp()->getBlock())
    if (inner == block)
      return true;
  return false;
}

Value &ElementEmitter::elementAt(Value tensor, ArrayRef<Value> at) {
  std::vector<const void *> key{tensor.getAsOpaquePointer()};
  for (Value coordinate : at)
    key.push_back(coordinate.getAsOpaquePointer());
  return loaded[std::move(key)];
}

/// An element that was loaded is not loaded again, even after a store: it does not change.
Value ElementEmitter::load(Value tensor, const Parameter &place, ArrayRef<Value> at) {
  Value &element = elementAt(tensor, at);
  if (element && isAround(element.getParentBlock(), b))
    return element;
  auto type = cast<RankedTensorType>(tensor.getType());
  element = b.load(deviceType(b, type.getElementType()), parameter(place), offset(type, at));
  return element;
}

Value ElementEmitter::read(Value tensor, ArrayRef<Value> at) {
  if (Value value = known.lookup(tensor))
    return value;
  if (std::optional<Parameter> place = placement.find(tensor); place && !computed.contains(tensor))
    return load(tensor, *place, at);
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return scalar(fill.getInputs().front());
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  const unsigned result = cast<OpResult>(tensor).getResultNumber();
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  Values loops(op.getNumLoops());
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    loops[map.getDimPosition(i)] = at[i];
  Values results = evaluate(op, std::move(loops));
  return results.empty() ? Value() : results[result];
}

void ElementEmitter::storeAt(const Store &store, ArrayRef<Value> at,
                             function_ref<void(Value tensor, Value offset)> write) {
  Value tensor = parameter(store.place);
  if (!store.window)
    return write(tensor, offset(cast<RankedTensorType>(store.value.getType()), at));
  auto type = cast<RankedTensorType>(store.window->tensor.getType()),
       whole = cast<RankedTensorType>(store.value.getType());
  Values within;
  Value isInside = b.integer(b.getI1Type(), 1);
  for (auto [index, first, size, all] : llvm::zip_equal(at, store.window->first, getExtents(type), getExtents(whole))) {
    within.push_back(b.sub(index, b.integer(first)));
    if (size != all)
      isInside = b.both(isInside, b.compare(arith::CmpIPredicate::ult, within.back(), extent(size)));
  }
  Value place = offset(type, within);
  b.ifThen(isInside, [&] { write(tensor, place); });
}

void ElementEmitter::store(const Store &store, Value element, ArrayRef<Value> at) {
  storeAt(store, at, [&](Value tensor, Value offset) { b.store(element, tensor, offset); });
}

void ElementEmitter::storeTogether(const Store &store, ArrayRef<Value> elements, ArrayRef<Value> at) {
  const auto count = int64_t(elements.size());
  auto isWhole = [&](int64_t columns) { return columns % count == 0; };
  if (store.window && !(isWhole(store.window->first.back()) &&
                        isWhole(cast<RankedTensorType>(store.window->tensor.getType()).getShape().back()))) {
    Values each(at);
    for (Value element : elements) {
      this->store(store, element, each);
      each.back() = b.add(each.back(), b.integer(1));
    }
    return;
  }
  storeAt(store, at, [&](Value tensor, Value offset) {
    tile::storeVector(b, elements, b.addressOf(elements.front().getType(), tensor, offset));
  });
}

Values ElementEmitter::written(linalg::GenericOp op, unsigned result, ArrayRef<Value> loops) {
  Values at;
  for (AffineExpr expr : op.getMatchingIndexingMap(op.getDpsInitOperand(result)).getResults())
    at.push_back(affine(expr, loops, {}));
  return at;
}

Values ElementEmitter::coordinates(linalg::GenericOp op, unsigned number, ArrayRef<Value> loops) {
  Values at;
  for (AffineExpr expr : op.getMatchingIndexingMap(&op->getOpOperand(number)).getResults())
    at.push_back(affine(expr, loops, {}));
  return at;
}

Value ElementEmitter::operand(linalg::GenericOp op, unsigned number, ArrayRef<Value> loops) {
  return read(op->getOperand(number), coordinates(op, number, loops));
}

Value ElementEmitter::address(linalg::GenericOp op, unsigned number) {
  std::optional<Parameter> place = placement.find(op->getOperand(number));
  return place ? parameter(*place) : Value();
}

Value ElementEmitter::offset(linalg::GenericOp op, unsigned number, ArrayRef<Value> loops) {
  return offset(cast<RankedTensorType>(op->getOperand(number).getType()), coordinates(op, number, loops));
}

void ElementEmitter::loadTogether(linalg::GenericOp op, unsigned number, ArrayRef<Values> loops) {
  Value tensor = op->getOperand(number);
  Type element = deviceType(b, getElementTypeOrSelf(tensor));
  Value first = b.addressOf(element, address(op, number), offset(op, number, loops.front()));
  for (auto [value, at] : llvm::zip_equal(tile::loadVector(b, element, int64_t(loops.size()), first), loops))
    elementAt(tensor, coordinates(op, number, at)) = value;
}

/// Clamps indices to the tensor; the value is 0 for a tensor without elements.
Value ElementEmitter::extract(tensor::ExtractOp op, Values at) {
  auto type = cast<RankedTensorType>(op.getTensor().getType());
  Value isThere;
  for (auto [index, size] : llvm::zip_equal(at, getExtents(type))) {
    Value count = extent(size);
    index = b.clamp(index, count);
    if (leastValue(size, kernel) > 0)
      continue;
    Value hasSome = b.compare(arith::CmpIPredicate::sgt, count, b.integer(0));
    isThere = isThere ? b.createOrFold<arith::AndIOp>(isThere, hasSome) : hasSome;
  }
  if (!isThere)
    return read(op.getTensor(), at);
  Type element = deviceType(b, type.getElementType());
  Value zero = arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(element)));
  return b.ifElse(isThere, element, [&] { return read(op.getTensor(), at); }, [&] { return zero; });
}

//===- Regions -----------------------------------------------------------===//

/// Returns a value that is defined outside of regions; null if it has no translation.
Value ElementEmitter::scalar(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getType().isIndex() ? symbol(argument.getArgNumber()) : Value();
  Operation *op = value.getDefiningOp();
  Values operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(scalar(operand));
    if (!operands.back())
      return {};
  }
  auto apply = dyn_cast<affine::AffineApplyOp>(op);
  if (!apply)
    return translateScalarOp(b, op, operands);
  AffineMap map = apply.getAffineMap();
  ArrayRef<Value> all(operands);
  return affine(map.getResult(0), all.take_front(map.getNumDims()), all.drop_front(map.getNumDims()));
}

/// Returns the block's values, including arguments, on which `wanted` depend.
static DenseSet<Value> valuesFor(Block *block, ValueRange wanted) {
  DenseSet<Value> found;
  SmallVector<Value> open(wanted);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (value.getParentBlock() != block || !found.insert(value).second)
      continue;
    if (Operation *op = value.getDefiningOp())
      llvm::append_range(open, op->getOperands());
  }
  return found;
}

/// Computes the values `wanted` of the region.
Values ElementEmitter::region(linalg::GenericOp op, ArrayRef<Value> loops, Operands operands, ValueRange wanted) {
  DenseMap<Value, Value> local;
  const DenseSet<Value> needed = valuesFor(op.getBlock(), wanted);
  auto lookup = [&](Value value) {
    Value known = local.lookup(value);
    return known ? known : value.getParentBlock() == op.getBlock() ? Value() : scalar(value);
  };
  Block *block = op.getBlock();
  for (BlockArgument argument : block->getArguments())
    if (needed.contains(argument)) {
      local[argument] = operands(argument.getArgNumber());
      if (!local[argument])
        return {};
    }
  for (Operation &inner : block->without_terminator()) {
    if (inner.getNumResults() != 1 || !needed.contains(inner.getResult(0)))
      continue;
    auto extracted = dyn_cast<tensor::ExtractOp>(inner);
    Values values;
    for (Value value : extracted ? extracted.getIndices() : inner.getOperands())
      values.push_back(lookup(value));
    Value result;
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      result = loops[index.getDim()];
    else if (llvm::all_of(values, [](Value value) { return bool(value); }))
      result = extracted ? extract(extracted, values) : translateScalarOp(b, &inner, values);
    if (!result) {
      if (!isBroken)
        inner.emitError() << "the cuda target has no translation for op '" << inner.getName() << "'";
      isBroken = true;
      return {};
    }
    local[inner.getResult(0)] = result;
  }
  Values results;
  for (Value value : wanted)
    results.push_back(lookup(value));
  return results;
}

static ValueRange yielded(linalg::GenericOp op) { return op.getBlock()->getTerminator()->getOperands(); }

Value ElementEmitter::evaluate(linalg::GenericOp op, Value wanted, ArrayRef<Value> loops) {
  Values values = region(op, loops, [&](unsigned number) { return operand(op, number, loops); }, wanted);
  return values.empty() ? Value() : values.front();
}

Values ElementEmitter::reduceOnce(linalg::GenericOp op, ArrayRef<Value> loops, const Values &sums) {
  const unsigned inputs = op.getNumDpsInputs();
  auto operandOf = [&](unsigned number) {
    return number < inputs ? operand(op, number, loops) : sums[number - inputs];
  };
  Values next = region(op, loops, operandOf, yielded(op));
  return next.empty() ? sums : next; // after a diagnostic nothing uses this
}

/// The least number of terms that are added one after another. Rounding errors accumulate, so longer sums are sums of
/// partial sums.
static constexpr int64_t termsOfBlock = 32;

/// Returns how to combine parts of the op's reduction if it is a sum of many floats, which is added up in blocks.
static std::optional<Combiner> longSum(linalg::GenericOp op, ArrayRef<unsigned> reduced, func::FuncOp kernel) {
  ValueRange next = yielded(op);
  if (next.size() != 1 || !next.front().getDefiningOp<arith::AddFOp>())
    return std::nullopt;
  int64_t terms = 1;
  for (unsigned loop : reduced)
    if ((terms *= largestValue(loopExtents(op)[loop], kernel)) > 2 * termsOfBlock)
      return Combiner::of(op);
  return std::nullopt;
}

/// Reduces over the loops `reduced`, outermost first, starting with `sums`. With `combiner`, each iteration of a loop
/// that has inner loops is a separate partial sum, and so is each block of iterations of a long loop.
Values ElementEmitter::reduce(linalg::GenericOp op, Values loops, ArrayRef<unsigned> reduced, Values sums,
                              const Combiner *combiner) {
  if (reduced.empty())
    return reduceOnce(op, loops, sums);
  const unsigned loop = reduced.front();
  auto part = [&](ValueRange total, function_ref<Values(Values)> add) {
    return combiner->combine(b, total, add(combiner->neutral(b, sums)));
  };
  auto iteration = [&](Value index, ValueRange last) {
    loops[loop] = index;
    auto inner = [&](Values from) { return reduce(op, loops, reduced.drop_front(), std::move(from), combiner); };
    return combiner && reduced.size() > 1 ? part(last, inner) : inner(Values(last));
  };
  const AffineExpr iterations = loopExtents(op)[loop];
  const int64_t most = largestValue(iterations, kernel);
  Value count = extent(iterations);
  if (!combiner || most <= 2 * termsOfBlock)
    return b.loop(count, sums, iteration);
  const auto terms = std::max(termsOfBlock, static_cast<int64_t>(std::sqrt(most))); // about as many as blocks
  Value size = b.integer(terms), blocks = b.div(b.add(count, b.integer(terms - 1)), size);
  return b.loop(blocks, sums, [&](Value block, ValueRange total) {
    Value first = b.mul(block, size), left = b.createOrFold<arith::MinSIOp>(b.sub(count, first), size);
    return part(total, [&](Values from) {
      return b.loop(left, from, [&](Value index, ValueRange last) { return iteration(b.add(first, index), last); });
    });
  });
}

Values ElementEmitter::evaluate(linalg::GenericOp op, Values loops) {
  SmallVector<unsigned> reduced;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      reduced.push_back(loop);
  if (reduced.empty())
    return region(op, loops, [&](unsigned number) { return operand(op, number, loops); }, yielded(op));
  if (computedReduction)
    if (Values results = computedReduction(op, loops); !results.empty())
      return results;
  Values sums;
  for (auto [number, init] : llvm::enumerate(op.getDpsInits())) {
    sums.push_back(read(init, written(op, number, loops)));
    if (!sums.back())
      return {};
  }
  auto together = std::exchange(reduceTogether, nullptr);
  const std::optional<Combiner> combiner = together ? std::nullopt : longSum(op, reduced, kernel);
  Values results = together ? together(op, loops, std::move(sums))
                            : reduce(op, loops, reduced, std::move(sums), combiner ? &*combiner : nullptr);
  reduceTogether = std::move(together);
  return isBroken ? Values() : results;
}

} // namespace kiln::cuda
