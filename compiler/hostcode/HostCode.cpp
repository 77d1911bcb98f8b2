// SPDX-License-Identifier: Apache-2.0
#include "compiler/hostcode/HostEmitter.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Check.h"
#include "compiler/dialect/StoredParts.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {
namespace {

/// Returns the argument types of the kernel function that a call names, without the worker.
SmallVector<Type> argumentTypes(kd::CallOp call) {
  SmallVector<Type> types = kd::expandParts(call.getExtents().getTypes());
  llvm::append_range(types, kd::expandParts(call.getArguments().getTypes()));
  llvm::append_range(types, kd::expandParts(call->getResultTypes()));
  return types;
}

} // namespace

LogicalResult HostEmitter::emit() {
  // Allocate space for the tensor descriptors of the call that needs the most. All calls reuse it.
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

  beginsSums = entry.walk([](kd::BeginReduceOp) { return WalkResult::interrupt(); }).wasInterrupted();
  builder.setInsertionPointToEnd(host.getBody());
  function = LLVM::LLVMFuncOp::create(builder, loc, input.symbol, LLVM::LLVMFunctionType::get(i32, {pointer}));
  Block *body = function.addEntryBlock(builder);
  failed = builder.createBlock(&function.getBody(), function.getBody().end(), {i32}, {loc});
  LLVM::ReturnOp::create(builder, loc, failed->getArgument(0));

  builder.setInsertionPointToStart(body);
  frameArgument = body->getArgument(0);
  descriptors =
      LLVM::AllocaOp::create(builder, loc, pointer, builder.getI8Type(), constant(i64, mostBytes), /*alignment=*/16);

  // The frame has the extents of the entry's own symbols; `symbols` has a value for each symbol of the model.
  Value extents = loadOfFrame(abi::frame::extents);
  unsigned next = 0;
  for (auto [i, symbol] : llvm::enumerate(input.model.symbols)) {
    bool isUsed = llvm::is_contained(input.entry.symbols, symbol);
    Value value = isUsed ? loadElement(i64, extents, next++) : constant(i64, symbol.min);
    symbols.emplace_back();
    setSymbol(i, value);
  }
  findOutputs();
  if (llvm::failed(emitBlock(entry.getBody().front())))
    return failure();
  entry.walk([&](kd::SendOp send) { // waits for all sends of the stage, so once is enough
    emitWait(send, kd::Group::Stages);
    return WalkResult::interrupt();
  });
  LLVM::ReturnOp::create(builder, loc, constant(i32, 0));
  return success();
}

/// Pipeline stages other than the last have only some of the entry's outputs; maps the function's results to them by
/// name.
void HostEmitter::findOutputs() {
  const auto &arguments = input.entry.arguments;
  const auto first = llvm::find_if(arguments, [](const ArgumentInterface &argument) { return argument.isOutput; });
  for (unsigned i = 0; i < entry.getNumResults(); ++i) {
    auto name = entry.getResultAttrOfType<StringAttr>(i, kd::nameAttrName);
    auto found = std::find_if(first, arguments.end(),
                              [&](const ArgumentInterface &argument) { return name && name == argument.name; });
    outputs.push_back((found == arguments.end() ? first + i : found) - arguments.begin());
  }
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
            .Case<kd::SlideOp>([&](auto slide) { return emitSlide(slide); })
            .Case<kd::StoreOp>([&](auto store) { return emitStore(store); })
            .Case<kd::AssignOp>([&](auto assign) { return emitAssign(assign); })
            .Case<kd::ConcatOp>([&](auto concat) { return emitConcat(concat); })
            .Case<kd::AllReduceOp>([&](auto op) { return emitCollective(op, KILN_ALL_REDUCE, op.getOver()); })
            .Case<kd::AllGatherOp>([&](auto op) { return emitCollective(op, KILN_ALL_GATHER, op.getOver()); })
            .Case<kd::ReduceScatterOp>([&](auto op) { return emitCollective(op, KILN_REDUCE_SCATTER, op.getOver()); })
            .Case<kd::SendOp>([&](auto op) { return emitSend(op); })
            .Case<kd::ReceiveOp>([&](auto op) { return emitReceive(op); })
            .Case<kd::BeginReduceOp>([&](auto op) { return emitBegin(op); })
            .Case<kd::CustomOp>([&](auto custom) { return emitCustom(custom); })
            .Case<kd::FinishOp>([&](auto op) { return emitWait(op, op.getOver()), success(); })
            .Case<kd::ScatterAddOp>([&](auto scatter) { return emitScatterAdd(scatter); })
            .Case<kd::IndexAddOp>([&](auto sum) { return emitIndexAdd(sum); })
            .Case<kd::ArgsortOp>([&](auto sort) { return emitArgsort(sort); })
            .Case<kd::RequireFiniteOp>([&](auto required) { return emitRequireFinite(required); })
            .Case<affine::AffineApplyOp, arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::MulIOp>(
                [&](Operation *index) { return emitIndex(*index); })
            // Addresses are computed where they are used.
            .Case<kd::ParameterOp, kd::RankOp, kd::StateOp, kd::ConstantOp, kd::ReshapeOp, kd::SliceOp, kd::YieldOp,
                  func::ReturnOp>([](Operation *) { return success(); })
            .Default([](Operation *other) { return other->emitOpError("has no host code: only kernel calls do"); });
    if (llvm::failed(result))
      return failure();
  }
  return success();
}

FailureOr<Value> HostEmitter::evaluate(AffineExpr expression, ArrayRef<Value> values) {
  AffineExpr roundedUp;
  expression.walk([&](AffineExpr part) {
    if (!roundedUp && part.getKind() == AffineExprKind::CeilDiv)
      roundedUp = part;
  });
  if (roundedUp)
    return entry.emitError("an extent has no host code: ")
           << AffineMapAttr::get(AffineMap::get(0, symbols.size(), roundedUp));

  /// Extents are never negative, so unsigned division computes the floor.
  struct Arithmetic : kd::AffineOperands<Value> {
    HostEmitter &emitter;

    Value constant(int64_t number) { return emitter.constant(emitter.i64, number); }
    Value add(Value a, Value b) { return emitter.add(a, b); }
    Value multiply(Value a, Value b) { return emitter.multiply(a, b); }
    Value floorDivide(Value a, Value b) { return LLVM::UDivOp::create(emitter.builder, emitter.loc, a, b); }
    Value ceilDivide(Value, Value) { llvm_unreachable("rejected"); }
    Value modulo(Value a, Value b) { return LLVM::URemOp::create(emitter.builder, emitter.loc, a, b); }
  };
  return kd::evaluateAffine(expression, Arithmetic{{values, values}, *this});
}

LogicalResult HostEmitter::emitIndex(Operation &op) {
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(indices.lookup(operand));
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    // Dimension operands come first. evaluate() takes one list, so shift the symbols after them.
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
  // Use a vector type: the translation to LLVM IR gives a tensor of rank 0 the type of its element, and one of rank 2
  // an array of arrays.
  auto shaped = cast<DenseElementsAttr>(constantOp.getValue());
  auto values = shaped.reshape(RankedTensorType::get({shaped.getNumElements()}, shaped.getElementType()));
  if (input.target.memorySpace != KILN_MEMORY_HOST)
    return byteAddress(loadOfFrame(abi::frame::constants), input.constants.add(values));
  auto elements = LLVM::LLVMArrayType::get(values.getElementType(), values.getNumElements());
  return addressOfData(elements, values, /*alignment=*/64);
}

/// The frame's field begins with the ranks' numbers. A device cannot read the frame: there a constant table holds all
/// possible numbers, and the result is the address of the right element.
Value HostEmitter::addressOfRank(kd::RankOp rank) {
  Value numbers = loadOfFrame(abi::frame::together);
  const auto group = static_cast<int64_t>(rank.getOver());
  if (input.target.memorySpace == KILN_MEMORY_HOST)
    return byteAddress(numbers, group * 4);
  const auto all = llvm::to_vector(llvm::seq<int32_t>(static_cast<int32_t>(kd::getNumRanks(rank, rank.getOver()))));
  const int64_t offset = input.constants.add(
      DenseIntElementsAttr::get(RankedTensorType::get({static_cast<int64_t>(all.size())}, i32), ArrayRef(all)));
  Value number = LLVM::ZExtOp::create(builder, loc, i64, loadElement(i32, numbers, group));
  return byteAddress(byteAddress(loadOfFrame(abi::frame::constants), offset), multiply(number, constant(i64, 4)));
}

Value HostEmitter::addressOfText(StringRef text) {
  auto value = builder.getStringAttr(text.str() + '\0');
  return addressOfData(LLVM::LLVMArrayType::get(builder.getI8Type(), value.size()), value, /*alignment=*/1);
}

Value HostEmitter::addressOfData(Type type, Attribute value, unsigned alignment) {
  for (auto global : host.getOps<LLVM::GlobalOp>())
    if (global.getValueOrNull() == value)
      return LLVM::AddressOfOp::create(builder, loc, global);
  OpBuilder top = OpBuilder::atBlockBegin(host.getBody());
  auto global = LLVM::GlobalOp::create(
      top, loc, type, /*isConstant=*/true, LLVM::Linkage::Private,
      ("constant_" + Twine(std::distance(host.getBody()->begin(), host.getBody()->end()))).str(), value, alignment);
  return LLVM::AddressOfOp::create(builder, loc, global);
}

LLVM::LLVMFuncOp HostEmitter::declare(StringRef name, Type result, ArrayRef<Type> parameters) {
  if (auto function = host.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return function;
  OpBuilder top = OpBuilder::atBlockBegin(host.getBody());
  return LLVM::LLVMFuncOp::create(top, loc, name, LLVM::LLVMFunctionType::get(result, parameters));
}

/// Returns the bytes of a tensor that is stored dense, as storedBytes does, for a number of elements that is computed
/// at run time.
FailureOr<Value> HostEmitter::bytesOf(RankedTensorType type) {
  return bytesOf(kd::getExtents(type), type.getElementType());
}

FailureOr<Value> HostEmitter::bytesOf(ArrayRef<AffineExpr> extents, Type element) {
  FailureOr<Value> elements = evaluate(kd::getProduct(extents, element.getContext()), symbols);
  if (llvm::failed(elements))
    return failure();
  if (kd::storedBytes(element, 8) == 8 * kd::storedBytes(element, 1))
    return multiply(*elements, constant(i64, kd::storedBytes(element, 1)));
  // Elements have less than a byte, and eight elements fill complete bytes.
  Value bits = multiply(*elements, constant(i64, kd::storedBytes(element, 8)));
  Value roundedUp = LLVM::AddOp::create(builder, loc, bits, constant(i64, 7));
  return LLVM::LShrOp::create(builder, loc, roundedUp, constant(i64, 3)).getResult();
}

FailureOr<Value> HostEmitter::addressOf(Value tensor) {
  while (Value source = kd::getSource(tensor))
    tensor = source;
  if (auto slice = tensor.getDefiningOp<kd::SliceOp>())
    return addressOfRows(slice);
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
  if (auto rank = tensor.getDefiningOp<kd::RankOp>())
    return addressOfRank(rank);
  if (auto state = tensor.getDefiningOp<kd::StateOp>())
    return addressOfState(state);
  if (auto append = tensor.getDefiningOp<kd::AppendOp>())
    return addressOfState(append);
  if (auto slide = tensor.getDefiningOp<kd::SlideOp>())
    return addressOfState(slide);
  if (Operation *home = input.plan.homeOf(tensor)) {
    if (auto append = dyn_cast<kd::AppendOp>(home))
      return addressOfAppended(append);
    if (auto slide = dyn_cast<kd::SlideOp>(home))
      return addressOfAdded(slide);
    auto store = dyn_cast<kd::StoreOp>(home);
    return store ? addressOfState(store) : addressOf(cast<kd::AssignOp>(home).getParameter());
  }
  const kd::MemoryPlacement place = input.plan.of(tensor);
  const auto inputs = llvm::count_if(entry.getArgumentTypes(), llvm::IsaPred<RankedTensorType>);
  switch (place.kind) {
  case kd::MemoryPlacement::Kind::Arena:
    return byteAddress(loadOfFrame(abi::frame::arena), input.entry.stateBytes + place.offset);
  case kd::MemoryPlacement::Kind::Argument:
    return loadElement(pointer, loadOfFrame(abi::frame::arguments),
                       place.offset < inputs ? place.offset : outputs[place.offset - inputs]);
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
        return entry.emitError("a kernel's tensor has dynamic extents without a map: ") << part.type;
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

void HostEmitter::emitIfTraced(llvm::function_ref<void(Value tracing)> tell) {
  Value tracing = loadOfFrame(abi::frame::tracing);
  Value isTraced =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, tracing, LLVM::ZeroOp::create(builder, loc, pointer));
  Block *before = builder.getInsertionBlock();
  Block *told = builder.createBlock(&function.getBody(), function.getBody().end());
  Block *after = builder.createBlock(&function.getBody(), function.getBody().end());
  builder.setInsertionPointToEnd(before);
  LLVM::CondBrOp::create(builder, loc, isTraced, told, ValueRange(), after, ValueRange(), std::pair(1u, 1u << 20));
  builder.setInsertionPointToStart(told);
  tell(tracing);
  LLVM::BrOp::create(builder, loc, ValueRange(), after);
  builder.setInsertionPointToStart(after);
}

LogicalResult HostEmitter::emitTraceBegin(kd::CallOp call, ArrayRef<Value> extents,
                                          ArrayRef<std::pair<Value, StringRef>> forms) {
  LogicalResult result = success();
  emitIfTraced([&](Value tracing) {
    Value name = addressOfText(input.kernels.find(call.getCallee())->second.symbol);
    for (auto [isTaken, form] : forms)
      name =
          LLVM::SelectOp::create(builder, loc, isTaken, addressOfText(input.kernels.find(form)->second.symbol), name);
    auto work = call->getAttrOfType<AffineMapAttr>(kd::workAttrName);
    FailureOr<Value> flops = evaluate(work.getValue().getResult(0), extents),
                     bytes = evaluate(work.getValue().getResult(1), extents);
    result = success(succeeded(flops) && succeeded(bytes));
    if (llvm::failed(result))
      return;
    emitTraceBegin(tracing, name, call, *flops, *bytes);
  });
  return result;
}

void HostEmitter::emitTraceBegin(Value tracing, Value name, Operation *op, Value flops, Value bytes) {
  auto layer = op->getAttrOfType<StringAttr>(kd::layerAttrName);
  auto begin = declare("kiln_trace_begin", LLVM::LLVMVoidType::get(builder.getContext()),
                       {pointer, pointer, pointer, i64, i64, i64});
  LLVM::CallOp::create(
      builder, loc, begin,
      ValueRange{tracing, name, addressOfText(layer ? layer.getValue() : ""), tracedLayerAt(op), flops, bytes});
}

void HostEmitter::emitTraceEnd() {
  emitIfTraced([&](Value tracing) {
    auto end = declare("kiln_trace_end", LLVM::LLVMVoidType::get(builder.getContext()), {pointer});
    LLVM::CallOp::create(builder, loc, end, tracing);
  });
}

void HostEmitter::continueIfOk(Value status) {
  continueIf(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, status, constant(i32, KILN_OK)), status);
}

LogicalResult HostEmitter::emitCall(kd::CallOp call) {
  if (call.getEnds())
    return emitGroups(call);
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
  return emitKernel(call, extents, arguments);
}

LogicalResult HostEmitter::emitKernel(kd::CallOp call, ArrayRef<Value> extents, ArrayRef<KernelArgument> arguments) {
  // The shape-specialised variants of a kernel have its calling convention.
  FailureOr<const KernelReference *> called = findKernel(call.getCallee());
  FailureOr<Value> kernel = addressOfKernel(call.getCallee(), call);
  SmallVector<std::pair<Value, StringRef>> choices; // per variant: whether it is taken, and its function
  if (llvm::failed(called) || llvm::failed(kernel))
    return failure();
  if (auto forms = input.variants.find(call.getCallee()); forms != input.variants.end())
    for (const KernelVariant &form : llvm::reverse(forms->second)) {
      FailureOr<Value> other = addressOfKernel(form.function, call);
      if (llvm::failed(other))
        return failure();
      auto compare = [&](LLVM::ICmpPredicate predicate, unsigned symbol, int64_t value) {
        return LLVM::ICmpOp::create(builder, loc, predicate, extents[symbol], constant(i64, value));
      };
      Value isFew = compare(LLVM::ICmpPredicate::ule, form.symbol, form.bound);
      for (unsigned symbol : form.ofOne)
        isFew = LLVM::AndOp::create(builder, loc, isFew, compare(LLVM::ICmpPredicate::eq, symbol, 1));
      kernel = LLVM::SelectOp::create(builder, loc, isFew, *other, *kernel).getResult();
      choices.emplace_back(isFew, form.function);
    }
  if (llvm::failed(emitTraceBegin(call, extents, choices)))
    return failure();
  Value status =
      (*called)->abi->emitCall(builder, loc, *kernel, loadOfFrame(abi::frame::worker), arguments, descriptors);
  emitTraceEnd();
  if (beginsSums)
    LLVM::CallOp::create(builder, loc,
                         declare("kiln_poll_collectives", LLVM::LLVMVoidType::get(builder.getContext()), {pointer}),
                         frameArgument);
  continueIf(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, status, constant(i32, 0)), status);
  return success();
}

void HostEmitter::continueIf(Value isOk, Value status) {
  Block *next = builder.createBlock(&function.getBody(), function.getBody().end());
  builder.setInsertionPointToEnd(isOk.getParentBlock());
  LLVM::CondBrOp::create(builder, loc, isOk, next, ValueRange(), failed, ValueRange(status));
  builder.setInsertionPointToStart(next);
}

LogicalResult emitHostCode(func::FuncOp entry, const HostCodeInput &input, ModuleOp host) {
  return HostEmitter(entry, input, host).emit();
}

} // namespace kiln
