// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/HostCode.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/StoredParts.h"
#include "compiler/object/BinaryInterface.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {
namespace {

/// Of the function that a call's kernel is, but for the worker.
SmallVector<Type> argumentTypes(kd::CallOp call) {
  SmallVector<Type> types = kd::expandParts(call->getOperandTypes());
  llvm::append_range(types, kd::expandParts(call->getResultTypes()));
  return types;
}

class HostEmitter {
public:
  HostEmitter(func::FuncOp entry, const HostCodeInput &input, ModuleOp host)
      : entry(entry), input(input), host(host), builder(host.getContext()), loc(entry.getLoc()),
        pointer(LLVM::LLVMPointerType::get(host.getContext())), i32(builder.getI32Type()), i64(builder.getI64Type()) {}

  LogicalResult emit();

private:
  LogicalResult emitBlock(Block &block);
  LogicalResult emitCall(kd::CallOp call);
  LogicalResult emitLoop(kd::LoopInterface loop);
  void enterSequence(kd::EachSequenceOp loop, Value index, Value rows);
  void leaveSequence(ArrayRef<Value> symbolsOutside);
  void setSymbol(unsigned position, Value value);
  LogicalResult emitAppend(kd::AppendOp append);
  LogicalResult emitStore(kd::StoreOp store);
  LogicalResult emitIndex(Operation &op);

  /// The parts of a tensor as arguments of a kernel.
  LogicalResult addArguments(Value tensor, SmallVectorImpl<KernelArgument> &arguments);
  FailureOr<Value> addressOf(Value tensor);
  FailureOr<Value> bytesOf(RankedTensorType type);
  FailureOr<Value> bytesOf(ArrayRef<AffineExpr> extents, Type element);
  /// By the op that reads or writes the state.
  template <class Op> Value addressOfState(Op op);
  FailureOr<Value> addressOfStep(kd::LoopStep step, RankedTensorType slice);
  /// The number of the layer whose copy a parameter or state of this place is; null outside of repeats.
  Value layerAt(Operation *op);
  void copyRows(Value target, Value source, Value rows, Value rowBytes, Value sourceStride);
  Value addressOfConstant(kd::ConstantOp constant);
  FailureOr<const KernelReference *> findKernel(StringRef kernel);
  FailureOr<Value> addressOfKernel(StringRef kernel, kd::CallOp call);
  FailureOr<Value> evaluate(AffineExpr expression, ArrayRef<Value> symbols);

  Value constant(Type type, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, value));
  }
  Value add(Value a, Value b) { return LLVM::AddOp::create(builder, loc, a, b); }
  Value subtract(Value a, Value b) { return LLVM::SubOp::create(builder, loc, a, b); }
  Value multiply(Value a, Value b) { return LLVM::MulOp::create(builder, loc, a, b); }
  Value byteAddress(Value base, Value offset) {
    return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset});
  }
  Value byteAddress(Value base, int64_t offset) {
    if (offset == 0)
      return base;
    if (offset < 1 << 28) // a GEPArg has 29 bits for a constant
      return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                                 ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
    return byteAddress(base, constant(i64, offset));
  }
  Value addressOfField(abi::Struct structure, Value base, unsigned field) {
    return LLVM::GEPOp::create(builder, loc, pointer, abi::typeOf(structure, builder.getContext()), base,
                               ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(field)});
  }
  /// A field of the frame; all are pointers.
  Value loadOfFrame(abi::frame::Field field) {
    return LLVM::LoadOp::create(builder, loc, pointer, addressOfField(abi::Struct::frame, frameArgument, field));
  }
  Value loadElement(Type type, Value array, int64_t index) {
    Value address =
        LLVM::GEPOp::create(builder, loc, pointer, type, array, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    return LLVM::LoadOp::create(builder, loc, type, address);
  }
  void storeOrder(Value isBackward) {
    LLVM::StoreOp::create(
        builder, loc, isBackward,
        addressOfField(abi::Struct::worker, loadOfFrame(abi::frame::worker), abi::worker::is_backward));
  }

  func::FuncOp entry;
  const HostCodeInput &input;
  ModuleOp host;
  OpBuilder builder;
  Location loc;
  Type pointer, i32, i64;

  LLVM::LLVMFuncOp function;
  Block *failed = nullptr;                   // returns its argument
  Value frameArgument, descriptors;          // of the tensors of a call
  llvm::DenseMap<Value, Value> indices;      // index values of the entry -> i64
  SmallVector<Value> symbols;                // the module's symbols
  llvm::DenseMap<Operation *, Value> layers; // kiln.repeat -> number of the layer over all repeats around it
  llvm::DenseMap<Operation *, Value> steps;  // loop -> the index of the slices that it is at
  Value sequence;                            // in kiln.each_sequence: the kiln_sequence_t
  Value rowsBefore;                          // and the rows of the sequences before it
};

LogicalResult HostEmitter::emit() {
  // Room for the tensors of the largest call, used again by each.
  int64_t mostBytes = 8;
  WalkResult known = entry.walk([&](kd::CallOp call) {
    FailureOr<const KernelReference *> kernel = findKernel(call.getCallee());
    if (llvm::failed(kernel))
      return WalkResult::interrupt();
    int64_t bytes = 0;
    for (Type type : argumentTypes(call))
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        bytes += (*kernel)->abi->descriptorBytes(tensor.getRank());
    mostBytes = std::max(mostBytes, bytes);
    return WalkResult::advance();
  });
  if (known.wasInterrupted())
    return failure();

  builder.setInsertionPointToEnd(host.getBody());
  function = LLVM::LLVMFuncOp::create(builder, loc, input.symbol, LLVM::LLVMFunctionType::get(i32, {pointer}));
  Block *body = function.addEntryBlock(builder);
  failed = builder.createBlock(&function.getBody(), function.getBody().end(), {i32}, {loc});
  LLVM::ReturnOp::create(builder, loc, failed->getArgument(0));

  builder.setInsertionPointToStart(body);
  frameArgument = body->getArgument(0);
  descriptors =
      LLVM::AllocaOp::create(builder, loc, pointer, builder.getI8Type(), constant(i64, mostBytes), /*alignment=*/16);

  // The entry's extents are those of its own symbols; the function counts the model's.
  Value extents = loadOfFrame(abi::frame::extents);
  unsigned next = 0;
  for (auto [i, symbol] : llvm::enumerate(input.model.symbols)) {
    bool isUsed = llvm::is_contained(input.entry.symbols, symbol);
    Value value = isUsed ? loadElement(i64, extents, next++) : constant(i64, symbol.min);
    symbols.emplace_back();
    setSymbol(i, value);
  }
  if (llvm::failed(emitBlock(entry.getBody().front())))
    return failure();
  LLVM::ReturnOp::create(builder, loc, constant(i32, 0));
  return success();
}

void HostEmitter::setSymbol(unsigned position, Value value) {
  symbols[position] = value;
  if (position < entry.getNumArguments() && entry.getArgument(position).getType().isIndex())
    indices[entry.getArgument(position)] = value;
}

LogicalResult HostEmitter::emitBlock(Block &block) {
  for (Operation &op : block) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case<kd::CallOp>([&](auto call) { return emitCall(call); })
            .Case<kd::LoopInterface>([&](auto loop) { return emitLoop(loop); })
            .Case<kd::AppendOp>([&](auto append) { return emitAppend(append); })
            .Case<kd::StoreOp>([&](auto store) { return emitStore(store); })
            .Case<affine::AffineApplyOp, arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::MulIOp>(
                [&](Operation *index) { return emitIndex(*index); })
            // Addresses are computed where they are used.
            .Case<kd::ParameterOp, kd::StateOp, kd::ConstantOp, kd::ReshapeOp, kd::YieldOp, func::ReturnOp>(
                [](Operation *) { return success(); })
            .Default([](Operation *other) { return other->emitOpError("has no host code: only kernel calls do"); });
    if (llvm::failed(result))
      return failure();
  }
  return success();
}

FailureOr<Value> HostEmitter::evaluate(AffineExpr expression, ArrayRef<Value> values) {
  if (auto number = dyn_cast<AffineConstantExpr>(expression))
    return constant(i64, number.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expression))
    return values[symbol.getPosition()];
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return values[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expression);
  FailureOr<Value> left = evaluate(binary.getLHS(), values), right = evaluate(binary.getRHS(), values);
  if (llvm::failed(left) || llvm::failed(right))
    return failure();
  // Extents are never negative, so unsigned division is the floor.
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    return LLVM::AddOp::create(builder, loc, *left, *right).getResult();
  case AffineExprKind::Mul:
    return LLVM::MulOp::create(builder, loc, *left, *right).getResult();
  case AffineExprKind::FloorDiv:
    return LLVM::UDivOp::create(builder, loc, *left, *right).getResult();
  case AffineExprKind::Mod:
    return LLVM::URemOp::create(builder, loc, *left, *right).getResult();
  default:
    return entry.emitError("an extent has no host code: ")
           << AffineMapAttr::get(AffineMap::get(0, symbols.size(), expression));
  }
}

LogicalResult HostEmitter::emitIndex(Operation &op) {
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(indices.lookup(operand));
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    // Dimension operands come first; evaluate() takes one list, so shift the symbols behind them.
    AffineMap map = apply.getAffineMap();
    AffineExpr expression = map.getResult(0).shiftSymbols(map.getNumSymbols(), map.getNumDims());
    FailureOr<Value> value = evaluate(expression, operands);
    if (llvm::failed(value))
      return failure();
    indices[apply.getResult()] = *value;
    return success();
  }
  Value result = op.getResult(0);
  if (!result.getType().isIndex())
    return op.emitOpError("has no host code: only index arithmetic has");
  if (auto number = dyn_cast<arith::ConstantOp>(op))
    indices[result] = constant(i64, cast<IntegerAttr>(number.getValue()).getInt());
  else if (isa<arith::AddIOp>(op))
    indices[result] = add(operands[0], operands[1]);
  else if (isa<arith::SubIOp>(op))
    indices[result] = subtract(operands[0], operands[1]);
  else
    indices[result] = multiply(operands[0], operands[1]);
  return success();
}

Value HostEmitter::addressOfConstant(kd::ConstantOp constantOp) {
  // One global for each distinct value; named by its position in the module. As a vector: the translation gives a
  // tensor of rank 0 the type of its element, and one of rank 2 an array of arrays.
  auto shaped = cast<DenseElementsAttr>(constantOp.getValue());
  auto values = shaped.reshape(RankedTensorType::get({shaped.getNumElements()}, shaped.getElementType()));
  if (input.target.memorySpace != KILN_MEMORY_HOST)
    return byteAddress(loadOfFrame(abi::frame::constants), input.constants.add(values));
  for (auto global : host.getOps<LLVM::GlobalOp>())
    if (global.getValueOrNull() == values)
      return LLVM::AddressOfOp::create(builder, loc, global);
  auto elements = LLVM::LLVMArrayType::get(values.getElementType(), values.getNumElements());
  OpBuilder top = OpBuilder::atBlockBegin(host.getBody());
  auto global =
      LLVM::GlobalOp::create(top, loc, elements, /*isConstant=*/true, LLVM::Linkage::Private,
                             ("constant_" + Twine(std::distance(host.getBody()->begin(), host.getBody()->end()))).str(),
                             values, /*alignment=*/64);
  return LLVM::AddressOfOp::create(builder, loc, global);
}

/// The bytes of a tensor that is stored dense: storedBytes of elements that are counted at run time.
FailureOr<Value> HostEmitter::bytesOf(RankedTensorType type) {
  return bytesOf(kd::getExtents(type), type.getElementType());
}

FailureOr<Value> HostEmitter::bytesOf(ArrayRef<AffineExpr> extents, Type element) {
  FailureOr<Value> elements = evaluate(kd::getProduct(extents, element.getContext()), symbols);
  if (llvm::failed(elements))
    return failure();
  if (kd::storedBytes(element, 8) == 8 * kd::storedBytes(element, 1))
    return multiply(*elements, constant(i64, kd::storedBytes(element, 1)));
  // Elements of less than a byte: eight of them are whole bytes.
  Value bits = multiply(*elements, constant(i64, kd::storedBytes(element, 8)));
  Value roundedUp = LLVM::AddOp::create(builder, loc, bits, constant(i64, 7));
  return LLVM::LShrOp::create(builder, loc, roundedUp, constant(i64, 3)).getResult();
}

Value HostEmitter::layerAt(Operation *op) {
  auto repeat = op->getParentOfType<kd::RepeatOp>();
  return repeat ? layers.lookup(repeat) : Value();
}

template <class Op> Value HostEmitter::addressOfState(Op op) {
  const StateInterface *state = input.model.findState(op.getName().str());
  Value states = sequence ? loadElement(pointer, sequence, 0) : loadOfFrame(abi::frame::arena);
  Value address = byteAddress(states, state->offset), layer = layerAt(op);
  return op.getCopies() > 1 && layer ? byteAddress(address, multiply(layer, constant(i64, state->stride))) : address;
}

void HostEmitter::copyRows(Value target, Value source, Value rows, Value rowBytes, Value sourceStride) {
  const std::string &name = input.target.copyRows;
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(host.getContext()),
                                          {pointer, pointer, pointer, i64, i64, i64});
  auto function = host.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!function) {
    OpBuilder top = OpBuilder::atBlockBegin(host.getBody());
    function = LLVM::LLVMFuncOp::create(top, loc, name, type);
  }
  LLVM::CallOp::create(builder, loc, function,
                       ValueRange{loadOfFrame(abi::frame::worker), target, source, rows, rowBytes, sourceStride});
}

LogicalResult HostEmitter::emitAppend(kd::AppendOp append) {
  auto rows = cast<RankedTensorType>(append.getX().getType()), whole = cast<RankedTensorType>(append.getType());
  SmallVector<AffineExpr> from = kd::getExtents(rows), to = kd::getExtents(whole);
  AffineExpr one = getAffineConstantExpr(1, rows.getContext());
  // The row of the state that is written first, in bytes.
  SmallVector<AffineExpr> before(to);
  before.front() = to.front() - from.front();
  FailureOr<Value> source = addressOf(append.getX()), offset = bytesOf(before, rows.getElementType());
  if (llvm::failed(source) || llvm::failed(offset))
    return failure();
  Value target = byteAddress(addressOfState(append), *offset);
  // What is copied side by side: all of it, or of each row of the operand some columns.
  bool isWhole = rows.getRank() == 1 || from.back() == to.back();
  SmallVector<AffineExpr> outer(isWhole ? ArrayRef(one) : ArrayRef(from).drop_back());
  SmallVector<AffineExpr> inner(isWhole ? ArrayRef(from) : ArrayRef(to).take_back());
  FailureOr<Value> count = evaluate(kd::getProduct(outer, rows.getContext()), symbols),
                   bytes = bytesOf(inner, rows.getElementType()),
                   stride = bytesOf(isWhole ? inner : SmallVector<AffineExpr>{from.back()}, rows.getElementType()),
                   skipped =
                       bytesOf(getAffineConstantExpr(append.getColumn(), rows.getContext()), rows.getElementType());
  if (llvm::failed(count) || llvm::failed(bytes) || llvm::failed(stride) || llvm::failed(skipped))
    return failure();
  copyRows(target, byteAddress(*source, *skipped), *count, *bytes, *stride);
  return success();
}

LogicalResult HostEmitter::emitStore(kd::StoreOp store) {
  FailureOr<Value> source = addressOf(store.getX()), bytes = bytesOf(cast<RankedTensorType>(store.getX().getType()));
  if (llvm::failed(source) || llvm::failed(bytes))
    return failure();
  copyRows(addressOfState(store), *source, constant(i64, 1), *bytes, *bytes);
  return success();
}

/// Slices lie one behind another; those of sequences have different numbers of rows.
FailureOr<Value> HostEmitter::addressOfStep(kd::LoopStep step, RankedTensorType slice) {
  SmallVector<AffineExpr> extents = kd::getExtents(slice);
  Value before = steps.lookup(step.loop);
  auto batched = dyn_cast<kd::EachSequenceOp>(step.loop.getOperation());
  if (batched && !isa<AffineConstantExpr>(extents.front())) {
    before = rowsBefore;
    extents.front() = getAffineConstantExpr(1, slice.getContext());
  }
  FailureOr<Value> whole = addressOf(step.whole), bytes = bytesOf(extents, slice.getElementType());
  if (llvm::failed(whole) || llvm::failed(bytes))
    return failure();
  return byteAddress(*whole, multiply(before, *bytes));
}

FailureOr<Value> HostEmitter::addressOf(Value tensor) {
  while (auto view = tensor.getDefiningOp<kd::ReshapeOp>())
    tensor = view.getX();
  if (std::optional<kd::LoopStep> step = kd::getLoopStep(tensor))
    return addressOfStep(*step, cast<RankedTensorType>(tensor.getType()));
  if (auto parameter = tensor.getDefiningOp<kd::ParameterOp>()) {
    PackedRange range = input.weights.of(parameter);
    Value address = byteAddress(loadOfFrame(abi::frame::weights), range.offset);
    if (Value layer = layerAt(parameter); parameter.getCopies() > 1 && layer)
      address = byteAddress(address, multiply(layer, constant(i64, range.stride)));
    return address;
  }
  if (auto constantOp = tensor.getDefiningOp<kd::ConstantOp>())
    return addressOfConstant(constantOp);
  if (auto state = tensor.getDefiningOp<kd::StateOp>())
    return addressOfState(state);
  if (auto append = tensor.getDefiningOp<kd::AppendOp>())
    return addressOfState(append);
  kd::MemoryPlacement place = input.plan.of(tensor);
  switch (place.kind) {
  case kd::MemoryPlacement::Kind::Arena:
    return byteAddress(loadOfFrame(abi::frame::arena),
                       (input.entry.isBatch() ? 0 : input.model.stateBytes) + place.offset);
  case kd::MemoryPlacement::Kind::Argument:
    return loadElement(pointer, loadOfFrame(abi::frame::arguments), place.offset);
  default:
    return entry.emitError("the memory plan has no place for a value of type ") << tensor.getType();
  }
}

LogicalResult HostEmitter::addArguments(Value tensor, SmallVectorImpl<KernelArgument> &arguments) {
  FailureOr<Value> address = addressOf(tensor);
  if (llvm::failed(address))
    return failure();
  for (const kd::StoredPart &part : kd::getStoredParts(cast<RankedTensorType>(tensor.getType()))) {
    KernelArgument argument{byteAddress(*address, part.offset), part.type.getElementType(), {}};
    auto extents = dyn_cast_or_null<AffineMapAttr>(part.type.getEncoding());
    for (auto [d, extent] : llvm::enumerate(part.type.getShape())) {
      if (!ShapedType::isDynamic(extent)) {
        argument.extents.push_back(constant(i64, extent));
        continue;
      }
      if (!extents)
        return entry.emitError("a kernel's tensor has run-time extents without a map: ") << part.type;
      FailureOr<Value> value = evaluate(extents.getValue().getResult(d), symbols);
      if (llvm::failed(value))
        return failure();
      argument.extents.push_back(*value);
    }
    arguments.push_back(std::move(argument));
  }
  return success();
}

FailureOr<const KernelReference *> HostEmitter::findKernel(StringRef kernel) {
  auto found = input.kernels.find(kernel);
  if (found == input.kernels.end())
    return entry.emitError("calls a kernel that was not compiled: ") << kernel;
  return &found->second;
}

FailureOr<Value> HostEmitter::addressOfKernel(StringRef kernel, kd::CallOp call) {
  FailureOr<const KernelReference *> found = findKernel(kernel);
  if (llvm::failed(found))
    return failure();
  const std::string &symbol = (*found)->symbol;
  auto function = host.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  if (!function) {
    OpBuilder top = OpBuilder::atBlockBegin(host.getBody());
    function = LLVM::LLVMFuncOp::create(top, loc, symbol, (*found)->abi->functionType(argumentTypes(call)));
  }
  return LLVM::AddressOfOp::create(builder, loc, function).getResult();
}

LogicalResult HostEmitter::emitCall(kd::CallOp call) {
  SmallVector<KernelArgument> arguments;
  SmallVector<Value> extents;
  for (Value value : llvm::concat<Value>(llvm::to_vector(call->getOperands()), llvm::to_vector(call->getResults()))) {
    if (value.getType().isIndex()) {
      extents.push_back(indices.lookup(value));
      arguments.push_back({extents.back(), Type(), {}});
      continue;
    }
    if (llvm::failed(addArguments(value, arguments)))
      return failure();
  }

  // The forms of a kernel have its calling convention.
  FailureOr<const KernelReference *> called = findKernel(call.getCallee());
  FailureOr<Value> kernel = addressOfKernel(call.getCallee(), call);
  if (llvm::failed(called) || llvm::failed(kernel))
    return failure();
  if (auto forms = input.variants.find(call.getCallee()); forms != input.variants.end())
    for (const KernelForm &form : llvm::reverse(forms->second)) {
      FailureOr<Value> other = addressOfKernel(form.function, call);
      if (llvm::failed(other))
        return failure();
      Value isFew =
          LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ule, extents[form.symbol], constant(i64, form.bound));
      kernel = LLVM::SelectOp::create(builder, loc, isFew, *other, *kernel).getResult();
    }
  Value status =
      (*called)->abi->emitCall(builder, loc, *kernel, loadOfFrame(abi::frame::worker), arguments, descriptors);
  Value isOk = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, status, constant(i32, 0));
  Block *next = builder.createBlock(&function.getBody(), function.getBody().end());
  builder.setInsertionPointToEnd(isOk.getParentBlock());
  LLVM::CondBrOp::create(builder, loc, isOk, next, ValueRange(), failed, ValueRange(status));
  builder.setInsertionPointToStart(next);
  return success();
}

/// From here on extents and states are the sequence's.
void HostEmitter::enterSequence(kd::EachSequenceOp loop, Value index, Value rows) {
  Value table = loadOfFrame(abi::frame::sequences);
  sequence = byteAddress(table, multiply(index, constant(i64, sizeof(kiln_sequence_t))));
  rowsBefore = rows;
  steps[loop] = index;
  Value extents = loadElement(pointer, sequence, 1);
  unsigned next = 0;
  for (auto [i, symbol] : llvm::enumerate(input.model.symbols)) {
    if (!llvm::is_contained(input.entry.ownSymbols, symbol))
      continue;
    setSymbol(i, loadElement(i64, extents, next++));
  }
}

void HostEmitter::leaveSequence(ArrayRef<Value> symbolsOutside) {
  sequence = rowsBefore = {};
  for (auto [i, value] : llvm::enumerate(symbolsOutside))
    setSymbol(i, value);
}

LogicalResult HostEmitter::emitLoop(kd::LoopInterface loop) {
  FailureOr<Value> count = evaluate(loop.getTripCount(), symbols);
  if (llvm::failed(count))
    return failure();
  auto batched = dyn_cast<kd::EachSequenceOp>(loop.getOperation());
  Value zero = constant(i64, 0), one = constant(i64, 1);
  Block *before = builder.getInsertionBlock();
  // The number of the iteration, and of the rows of the sequences before.
  Block *header = builder.createBlock(&function.getBody(), function.getBody().end(), {i64, i64}, {loc, loc});
  Block *body = builder.createBlock(&function.getBody(), function.getBody().end());
  Block *after = builder.createBlock(&function.getBody(), function.getBody().end());
  builder.setInsertionPointToEnd(before);
  LLVM::BrOp::create(builder, loc, ValueRange{zero, zero}, header);
  builder.setInsertionPointToStart(header);
  Value index = header->getArgument(0);
  Value isInside = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, index, *count);
  LLVM::CondBrOp::create(builder, loc, isInside, body, ValueRange(), after, ValueRange());

  builder.setInsertionPointToStart(body);
  const SmallVector<Value> symbolsOutside = symbols;
  if (auto scan = dyn_cast<kd::ScanOp>(loop.getOperation())) {
    steps[loop] = scan.getReverse() ? subtract(subtract(*count, one), index) : index;
    storeOrder(LLVM::AndOp::create(builder, loc, index, one));
  } else if (batched) {
    enterSequence(batched, index, header->getArgument(1));
  } else {
    Value outer = layerAt(loop);
    steps[loop] = index;
    layers[loop] = outer ? add(multiply(outer, *count), index) : index;
  }
  if (llvm::failed(emitBlock(loop->getRegion(0).front())))
    return failure();
  const int64_t own = batched ? batched.getBatchSymbols().own : -1;
  Value rows = own >= 0 ? add(rowsBefore, symbols[own]) : zero;
  LLVM::BrOp::create(builder, loc, ValueRange{add(index, one), rows}, header);
  builder.setInsertionPointToStart(after);
  if (batched)
    leaveSequence(symbolsOutside);
  if (isa<kd::ScanOp>(loop.getOperation()))
    storeOrder(zero);
  return success();
}

} // namespace

LogicalResult emitHostCode(func::FuncOp entry, const HostCodeInput &input, ModuleOp host) {
  return HostEmitter(entry, input, host).emit();
}

} // namespace kiln
