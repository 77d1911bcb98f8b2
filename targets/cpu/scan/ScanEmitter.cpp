// SPDX-License-Identifier: Apache-2.0
//
// The kernel function stores its symbols and addresses in an array, the closure, from which each task loads them.
#include "targets/cpu/scan/ScanEmitter.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/kernel/KernelFunction.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "targets/cpu/scan/OpFunction.h"
#include "targets/halide/Abi.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cpu {

using namespace mlir;

namespace {

constexpr int64_t cacheLine = 64;
/// A block's states and values have at most that many bytes, unless an extent of 1 has more.
constexpr int64_t blockBytes = 16 << 10;
/// A task computes at least that many bytes of values, in all iterations together.
constexpr int64_t taskBytes = 64 << 10;
/// Blocks are smaller if there would be fewer.
constexpr int64_t wantedBlocks = 8;

class ScanEmitter {
public:
  ScanEmitter(func::FuncOp kernel, StringRef symbol, StringRef hookPrefix, const ScanMachine &machine)
      : kernel(kernel), scan(scanOf(kernel)), blocks(*findScanBlocks(scan, /*isExpanded=*/true)), symbol(symbol),
        hookPrefix(hookPrefix), machine(machine), module(ModuleOp::create(kernel.getLoc())),
        b(kernel.getLoc(), kernel.getContext()) {
    for (BlockArgument argument : kernel.getArguments())
      (argument.getType().isIndex() ? numSymbols : numTensors) += 1;
    numTensors += kernel.getNumResults();
    chooseBlock();
    findHomes();
  }

  ScanCode emit() {
    b.setInsertionPointToEnd(module->getBody());
    const Type i32 = b.getI32Type(), i64 = b.getI64Type(), pointer = b.pointer();
    auto task = LLVM::LLVMFunctionType::get(i32, {pointer, i32, pointer});
    LLVM::LLVMFuncOp::create(b, (hookPrefix + "do_par_for").str(),
                             LLVM::LLVMFunctionType::get(i32, {pointer, pointer, i32, i32, pointer}));
    LLVM::LLVMFuncOp::create(b, (hookPrefix + "malloc").str(),
                             LLVM::LLVMFunctionType::get(pointer, {pointer, sizeType()}));
    LLVM::LLVMFuncOp::create(b, (hookPrefix + "free").str(),
                             LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, pointer}));
    taskFunction = LLVM::LLVMFuncOp::create(b, symbol.str() + "_task", task, LLVM::Linkage::Internal);
    emitTask();
    emitKernel(i64);
    return {std::move(module), scratch > 0 ? cacheLine + int64_t(llvm::alignTo(scratch, cacheLine)) : 0};
  }

private:
  /// Where a value of the body is: a tensor argument or result of the kernel, or scratch memory at an offset.
  struct Place {
    Layout layout;
    int tensor = -1;     // number among arguments and results
    bool isStep = false; // the slice of the tensor in this iteration
    int64_t offset = 0;  // in scratch memory
  };

  //===- Memory -----------------------------------------------------------===//

  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  Block &body() { return scan.getBody().front(); }
  unsigned numCarried() { return scan.getInits().size(); }
  unsigned numInputs() { return numTensors - kernel.getNumResults(); }
  Value yielded(unsigned number) { return body().getTerminator()->getOperand(number); }

  /// Chooses the number of indices in a block.
  void chooseBlock() {
    if (!blocks.extent)
      return;
    auto bounds = KernelFunction(kernel).boundsOf(blocks.extent);
    const int64_t most = bounds ? bounds->max : std::numeric_limits<int32_t>::max();
    bool isContiguous = false;
    for (auto [value, axis] : blocks.axes)
      isContiguous |= axis + 1 == unsigned(typeOf(value).getRank());
    const int64_t grain = isContiguous ? cacheLine / 4 : 1;
    const int64_t wanted = std::min(blockBytes / blocks.bytes, (most + wantedBlocks - 1) / wantedBlocks);
    room =
        std::min<int64_t>(std::max<int64_t>(wanted / grain * grain, wanted < grain && !isContiguous ? 1 : grain), most);
    if (room * blocks.bytes > 4 * blockBytes)
      room = std::max<int64_t>(1, blockBytes / blocks.bytes);
  }

  Place inScratch(Value value) {
    Place place{{typeOf(value), std::nullopt, room}};
    SmallVector<AffineExpr> extents = mlir::kiln::getExtents(typeOf(value));
    int64_t elements = 1;
    if (auto axis = blocks.axes.find(value); axis != blocks.axes.end()) {
      place.layout.blocked = axis->second;
      extents.erase(extents.begin() + axis->second);
      elements = room;
    }
    elements *= KernelFunction(kernel).boundsOf(mlir::kiln::getProduct(extents, kernel.getContext()))->max;
    place.offset = scratch;
    scratch += int64_t(llvm::alignTo(mlir::kiln::storedBytes(typeOf(value).getElementType(), elements), cacheLine));
    return place;
  }

  Place resultPlace(unsigned number) {
    const bool isStacked = number >= numCarried();
    return {{typeOf(yielded(number)), std::nullopt, 0}, int(numInputs() + returnedAs(number)), isStacked, 0};
  }
  /// Returns the number of the kernel's result that the scan's result is.
  unsigned returnedAs(unsigned number) {
    auto results = KernelFunction(kernel).results();
    for (auto [i, value] : llvm::enumerate(results))
      if (value == scan.getResult(number))
        return i;
    llvm_unreachable("a kernel of a scan returns all of its results");
  }

  /// Whether the state's memory may be overwritten by the op that computes its next value.
  bool isInPlace(unsigned number) {
    auto op = yielded(number).getDefiningOp<linalg::GenericOp>();
    if (!op || op->getBlock() != &body() || op->getNumResults() != 1 || op.getNumReductionLoops() > 0)
      return false;
    AffineMap written = op.getIndexingMapMatchingResult(cast<OpResult>(yielded(number)));
    return llvm::all_of(scan.getBody().getArgument(number).getUses(), [&](OpOperand &use) {
      auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
      return user && (user == op ? op.getMatchingIndexingMap(&use) == written : user->isBeforeInBlock(op));
    });
  }

  void findHomes() {
    for (unsigned i = 0; i < numCarried(); ++i) {
      homes[scan.getBody().getArgument(i)] = resultPlace(i);
      if (isInPlace(i) && homes.try_emplace(yielded(i), resultPlace(i)).second)
        isStored.insert(i);
    }
    for (unsigned i = numCarried(); i < scan.getNumResults(); ++i)
      if (auto op = yielded(i).getDefiningOp<linalg::GenericOp>();
          op && op->getBlock() == &body() && homes.try_emplace(yielded(i), resultPlace(i)).second)
        isStored.insert(i);
    for (linalg::GenericOp op : body().getOps<linalg::GenericOp>())
      for (OpResult result : op->getResults())
        if (!homes.contains(result))
          homes[result] = inScratch(result);
    // States that become the old value of a state are copied before any state changes.
    for (unsigned i = 0; i < numCarried(); ++i)
      if (auto argument = dyn_cast<BlockArgument>(yielded(i));
          argument && argument.getOwner() == &body() && argument.getArgNumber() < numCarried() &&
          argument.getArgNumber() != i && !copies.contains(argument))
        copies[argument] = inScratch(argument);
    for (auto [slice, sequence] : llvm::zip_equal(scan.getSlices(), scan.getSequences()))
      homes[slice] = {{typeOf(slice), std::nullopt, 0}, inputNumber(sequence), true, 0};
  }

  int inputNumber(Value value) { return int(cast<BlockArgument>(value).getArgNumber() - numSymbols); }

  Place placeOf(Value value) {
    if (auto home = homes.find(value); home != homes.end())
      return home->second;
    return {{typeOf(value), std::nullopt, 0}, inputNumber(value), false, 0};
  }

  //===- Tasks ------------------------------------------------------------===//

  Type sizeType() { return b.getIntegerType(machine.pointerBits); }

  Value slot(Value closure, unsigned number) {
    return LLVM::GEPOp::create(b, b.pointer(), b.getI64Type(), closure, ArrayRef<LLVM::GEPArg>{int32_t(number)});
  }

  Value addressOf(const Place &place) {
    if (place.tensor < 0)
      return LLVM::GEPOp::create(b, b.pointer(), b.getI8Type(), scratchMemory,
                                 ArrayRef<LLVM::GEPArg>{int32_t(place.offset)});
    Value base = tensors[place.tensor];
    if (!place.isStep)
      return base;
    Value elements =
        b.evaluate(mlir::kiln::getProduct(mlir::kiln::getExtents(place.layout.type), b.getContext()), {}, symbols);
    return b.address(base, place.layout.type.getElementType(), b.times(step, elements));
  }

  /// Collects the pointers of a call. Equal places have one pointer.
  struct Pointers {
    SmallVector<Place> places;
    OpFunction::Memory add(const Place &place) {
      for (auto [i, other] : llvm::enumerate(places))
        if (other.tensor == place.tensor && other.isStep == place.isStep && other.offset == place.offset)
          return {place.layout, unsigned(i)};
      places.push_back(place);
      return {place.layout, unsigned(places.size() - 1)};
    }
  };

  void call(const Pointers &pointers, function_ref<void(OpFunction &, ArrayRef<OpFunction::Memory>)> build,
            ArrayRef<OpFunction::Memory> memories) {
    OpFunction function(*module, symbol.str() + "_" + std::to_string(numFunctions++), pointers.places.size(),
                        numSymbols, machine);
    build(function, memories);
    SmallVector<Value> operands;
    for (const Place &place : pointers.places)
      operands.push_back(addressOf(place));
    operands.append({first, count});
    llvm::append_range(operands, symbols);
    LLVM::CallOp::create(b, function.function, operands);
  }

  void copy(const Place &from, const Place &to, std::optional<unsigned> divided) {
    Pointers pointers;
    const OpFunction::Memory memories[] = {pointers.add(from), pointers.add(to)};
    call(
        pointers, [&](OpFunction &function, ArrayRef<OpFunction::Memory> m) { function.copy(m[0], m[1], divided); },
        memories);
  }

  std::optional<unsigned> dividedAxis(unsigned number) {
    return blocks.extent ? std::optional(blocks.yielded[number]) : std::nullopt;
  }

  void emitInitialValues() {
    for (unsigned i = 0; i < numCarried(); ++i) {
      Value init = scan.getInits()[i];
      const Place state = resultPlace(i);
      if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
        auto value = cast<TypedAttr>(fill.getInputs()[0].getDefiningOp<arith::ConstantOp>().getValue());
        Pointers pointers;
        const OpFunction::Memory memory = pointers.add(state);
        call(
            pointers,
            [&](OpFunction &function, ArrayRef<OpFunction::Memory> m) { function.fill(value, m[0], dividedAxis(i)); },
            memory);
      } else {
        copy({{typeOf(init), std::nullopt, 0}, inputNumber(init), false, 0}, state, dividedAxis(i));
      }
    }
  }

  void emitOp(linalg::GenericOp op) {
    Pointers pointers;
    SmallVector<OpFunction::Memory> memories;
    for (Value operand : op.getDpsInputs()) {
      Operation *source = operand.getDefiningOp();
      const bool isShape = source && !isa<linalg::GenericOp>(source); // only its extents are used
      memories.push_back(isShape ? OpFunction::Memory{} : pointers.add(placeOf(operand)));
    }
    const size_t inputs = memories.size();
    for (OpResult result : op->getResults())
      memories.push_back(pointers.add(placeOf(result)));
    auto loop = blocks.loops.find(op);
    const std::optional<unsigned> divided = loop == blocks.loops.end() ? std::nullopt : std::optional(loop->second);
    call(
        pointers,
        [&](OpFunction &function, ArrayRef<OpFunction::Memory> m) {
          function.compute(op, m.take_front(inputs), m.drop_front(inputs), divided);
        },
        memories);
  }

  void emitIteration() {
    for (linalg::GenericOp op : body().getOps<linalg::GenericOp>())
      emitOp(op);
    for (unsigned i = numCarried(); i < scan.getNumResults(); ++i)
      if (!isStored.contains(i))
        copy(placeOf(yielded(i)), resultPlace(i), dividedAxis(i));
    for (auto &[state, place] : copies)
      copy(placeOf(state), place, dividedAxis(cast<BlockArgument>(state).getArgNumber()));
    for (unsigned i = 0; i < numCarried(); ++i) {
      Value next = yielded(i);
      if (isStored.contains(i) || next == scan.getBody().getArgument(i))
        continue;
      auto copied = copies.find(next);
      copy(copied == copies.end() ? placeOf(next) : copied->second, resultPlace(i), dividedAxis(i));
    }
  }

  /// Calls `body` in a loop from `lower` to `upper`.
  void loop(Value lower, Value upper, function_ref<void(Value)> body) {
    auto each = scf::ForOp::create(b, lower, upper, b.number(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(each.getBody()->getTerminator());
    body(each.getInductionVar());
  }

  void loadClosure(Value closure) {
    symbols.clear();
    tensors.clear();
    for (unsigned i = 0; i < numSymbols; ++i)
      symbols.push_back(LLVM::LoadOp::create(b, b.getI64Type(), slot(closure, i)));
    for (unsigned i = 0; i < numTensors; ++i)
      tensors.push_back(LLVM::LoadOp::create(b, b.pointer(), slot(closure, numSymbols + i)));
  }

  Value extentValue() { return blocks.extent ? b.evaluate(blocks.extent, {}, symbols) : b.number(1); }

  /// A task computes some blocks, one after the other.
  void emitTask() {
    OpBuilder::InsertionGuard guard(b);
    Block *entry = taskFunction.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    Value worker = entry->getArgument(0), closure = entry->getArgument(2);
    loadClosure(closure);
    Value perTask = LLVM::LoadOp::create(b, b.getI64Type(), slot(closure, numSymbols + numTensors));
    if (scratch > 0)
      scratchMemory =
          LLVM::CallOp::create(
              b, TypeRange(b.pointer()), (hookPrefix + "malloc").str(),
              ValueRange{worker,
                         LLVM::ConstantOp::create(b, sizeType(), b.getIntegerAttr(sizeType(), scratch)).getResult()})
              .getResult();
    Value index = arith::ExtUIOp::create(b, b.getI64Type(), entry->getArgument(1));
    Value extent = extentValue(), size = b.number(room);
    Value begin = b.times(index, perTask), end = b.least(b.plus(begin, perTask), b.roundedUp(extent, size));
    Value steps = b.evaluate(scan.getTripCount(), {}, symbols);
    loop(begin, end, [&](Value block) {
      first = b.times(block, size);
      count = b.least(size, b.minus(extent, first));
      emitInitialValues();
      loop(b.number(0), steps, [&](Value i) {
        step = scan.getReverse() ? b.minus(b.minus(steps, b.number(1)), i) : i;
        emitIteration();
      });
    });
    if (scratch > 0)
      LLVM::CallOp::create(b, TypeRange(), (hookPrefix + "free").str(), ValueRange{worker, scratchMemory});
    LLVM::ReturnOp::create(b, LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(0)).getResult());
  }

  void emitKernel(Type i64) {
    SmallVector<Type> types(kernel.getArgumentTypes());
    llvm::append_range(types, kernel.getResultTypes());
    auto function = LLVM::LLVMFuncOp::create(b, symbol, halide::halideAbi().functionType(types));
    Block *entry = function.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    Value slots = LLVM::ConstantOp::create(b, i64, b.getI64IntegerAttr(numSymbols + numTensors + 1));
    Value closure = LLVM::AllocaOp::create(b, b.pointer(), i64, slots, /*alignment=*/16);
    for (auto [i, argument] : llvm::enumerate(entry->getArguments().drop_front())) {
      Value word = i < numSymbols ? Value(arith::ExtUIOp::create(b, i64, argument))
                                  : halide::emitAddressOf(b, b.getLoc(), argument);
      LLVM::StoreOp::create(b, word, slot(closure, i));
    }
    loadClosure(closure);
    Value size = b.number(room), numBlocks = b.roundedUp(extentValue(), size);
    Value steps = b.evaluate(scan.getTripCount(), {}, symbols);
    Value work = b.plus(b.times(steps, b.number(std::max<int64_t>(1, room * blocks.bytes))), b.number(1));
    Value perTask = b.plus(b.dividedBy(b.number(taskBytes), work), b.number(1));
    LLVM::StoreOp::create(b, perTask, slot(closure, numSymbols + numTensors));
    Value tasks = b.roundedUp(numBlocks, perTask);
    Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, tasks, b.number(1));
    Value worker = entry->getArgument(0);
    Value zero = LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(0));
    auto choice = scf::IfOp::create(b, TypeRange(b.getI32Type()), isOne, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(choice.thenBlock());
      Value status = LLVM::CallOp::create(b, taskFunction, ValueRange{worker, zero, closure}).getResult();
      scf::YieldOp::create(b, status);
      b.setInsertionPointToStart(choice.elseBlock());
      Value address = LLVM::AddressOfOp::create(b, taskFunction);
      Value number = arith::TruncIOp::create(b, b.getI32Type(), tasks);
      status = LLVM::CallOp::create(b, TypeRange(b.getI32Type()), (hookPrefix + "do_par_for").str(),
                                    ValueRange{worker, address, zero, number, closure})
                   .getResult();
      scf::YieldOp::create(b, status);
    }
    LLVM::ReturnOp::create(b, choice.getResults());
  }

  func::FuncOp kernel;
  mlir::kiln::ScanOp scan;
  ScanBlocks blocks;
  StringRef symbol, hookPrefix;
  const ScanMachine &machine;
  OwningOpRef<ModuleOp> module;
  IndexBuilder b;
  LLVM::LLVMFuncOp taskFunction;
  unsigned numSymbols = 0, numTensors = 0, numFunctions = 0;
  int64_t room = 1;    // indices of a block
  int64_t scratch = 0; // bytes of scratch memory
  llvm::DenseMap<Value, Place> homes;
  llvm::MapVector<Value, Place> copies;
  llvm::DenseSet<unsigned> isStored; // the yielded values that are computed in their place

  // Values of the task function.
  SmallVector<Value> symbols, tensors;
  Value scratchMemory, first, count, step;
};

} // namespace

ScanCode emitScan(func::FuncOp kernel, StringRef symbol, StringRef hookPrefix, const ScanMachine &machine) {
  return ScanEmitter(kernel, symbol, hookPrefix, machine).emit();
}

} // namespace kiln::cpu
