// SPDX-License-Identifier: Apache-2.0
//
// The class that emits entry-point glue. Kernel calls and memory are in HostCode.cpp, calls for each group of
// rows in HostGroups.cpp, loops and states in HostLoops.cpp.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/hostcode/HostCode.h"
#include "compiler/object/BinaryInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kiln {

/// Emits the host function of one entry.
class HostEmitter {
public:
  HostEmitter(mlir::func::FuncOp entry, const HostCodeInput &input, mlir::ModuleOp host)
      : entry(entry), input(input), host(host), builder(host.getContext()), loc(entry.getLoc()),
        pointer(mlir::LLVM::LLVMPointerType::get(host.getContext())), i32(builder.getI32Type()),
        i64(builder.getI64Type()) {}

  mlir::LogicalResult emit();

private:
  void findOutputs();
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitCall(mlir::kiln::CallOp call);
  /// Emits the call of the kernel, or of its variant for these extents.
  mlir::LogicalResult emitKernel(mlir::kiln::CallOp call, llvm::ArrayRef<mlir::Value> extents,
                                 llvm::ArrayRef<KernelArgument> arguments);
  /// Emits a loop over groups of rows, with a call for each that has rows.
  mlir::LogicalResult emitGroups(mlir::kiln::CallOp call);
  mlir::LogicalResult emitGroup(mlir::kiln::CallOp call, mlir::Value group, mlir::Value first, mlir::Value count);
  /// Appends the part of a tensor that belongs to a group of a call.
  mlir::LogicalResult addPart(mlir::Value tensor, int64_t groups, mlir::Value group,
                              mlir::SmallVectorImpl<KernelArgument> &arguments);
  /// Appends `count` rows of a tensor.
  mlir::LogicalResult addRows(mlir::Value tensor, mlir::Value first, mlir::Value count,
                              mlir::SmallVectorImpl<KernelArgument> &arguments);
  /// Emits a branch in which `tell` emits code that runs only if the call of the entry is traced.
  void emitIfTraced(llvm::function_ref<void(mlir::Value tracing)> tell);
  void emitTraceBegin(mlir::Value tracing, mlir::Value name, mlir::Operation *op, mlir::Value flops, mlir::Value bytes);
  void emitTraceEnd();
  /// Emits what a trace gets before a kernel. `forms` has, for each shape-specialised variant, whether it is called
  /// instead, and its function.
  mlir::LogicalResult emitTraceBegin(mlir::kiln::CallOp call, llvm::ArrayRef<mlir::Value> extents,
                                     llvm::ArrayRef<std::pair<mlir::Value, llvm::StringRef>> forms);
  mlir::LogicalResult emitLoop(mlir::kiln::LoopInterface loop);
  mlir::LogicalResult emitIteration(mlir::kiln::LoopInterface loop, mlir::Value index, mlir::Value count);
  void waitForSent(mlir::kiln::LoopInterface loop);
  /// Emits a loop that runs ahead, interleaved with the loop that follows it.
  mlir::LogicalResult emitTogether(mlir::kiln::ScanOp ahead);
  /// Emits a loop over the numbers below `count`. It carries a value, at first 0; `emitOne` returns that of the next
  /// iteration. If it sets `*ended`, the loop ends after an iteration where that value is true.
  mlir::LogicalResult
  emitCounted(mlir::Value count,
              llvm::function_ref<mlir::FailureOr<mlir::Value>(mlir::Value index, mlir::Value value)> emitOne,
              mlir::Value *ended = nullptr);
  /// Emits whether a loop that ends early has ended with the iteration, and zeros in the slices of those after it.
  mlir::FailureOr<mlir::Value> emitEnd(mlir::kiln::ScanOp scan, mlir::Value index, mlir::Value count);
  mlir::LogicalResult emitIf(mlir::Value condition, llvm::function_ref<mlir::LogicalResult()> emitThen);
  /// Returns the number of the pipeline stage.
  mlir::Value stage();
  void enterSequence(mlir::kiln::EachSequenceOp loop, mlir::Value index, mlir::Value rows);
  void leaveSequence(mlir::ArrayRef<mlir::Value> symbolsOutside);
  void setSymbol(unsigned position, mlir::Value value);
  /// Returns the address of the first row that the op writes to the state.
  mlir::FailureOr<mlir::Value> addressOfAppended(mlir::kiln::AppendOp append);
  mlir::FailureOr<mlir::Value> addressOfRows(mlir::kiln::SliceOp slice);
  mlir::LogicalResult emitAppend(mlir::kiln::AppendOp append);
  mlir::LogicalResult emitSlide(mlir::kiln::SlideOp slide);
  mlir::LogicalResult emitStore(mlir::kiln::StoreOp store);
  /// Emits a store of a sliding state whose rows stay in place: their position advances, and the added rows are copied.
  mlir::LogicalResult emitAdvance(mlir::kiln::StoreOp store, mlir::kiln::SlideOp slide);
  /// Emits copies of the `rows` of a sliding state's memory after its first n rows, at the beginning of the memory.
  void emitSecondCopies(const StateInterface &state, mlir::Value memory, mlir::Value rows);
  /// Emits the same for a sliding state at whose position values other than a window's were stored.
  void emitSecondCopies(mlir::kiln::StoreOp store);
  /// Emits code that sets small floats to 0 in the `bytes` before `end`.
  mlir::LogicalResult emitFlush(mlir::kiln::StoreOp store, mlir::Value end, mlir::Value bytes);
  mlir::LogicalResult emitAssign(mlir::kiln::AssignOp assign);
  mlir::LogicalResult emitConcat(mlir::kiln::ConcatOp concat);
  mlir::LogicalResult emitScatterAdd(mlir::kiln::ScatterAddOp scatter);
  mlir::LogicalResult emitIndexAdd(mlir::kiln::IndexAddOp sum);
  mlir::LogicalResult emitArgsort(mlir::kiln::ArgsortOp sort);
  /// Emits the call of a function of the run time: the worker, the tensors, dimensions, and numbers of 32 bits.
  mlir::LogicalResult emitIndexed(mlir::Operation *op, mlir::StringRef name, mlir::ArrayRef<mlir::Value> tensors,
                                  mlir::ArrayRef<mlir::AffineExpr> extents, mlir::ArrayRef<uint32_t> numbers);
  /// Emits the call of a function of the program.
  mlir::LogicalResult emitCustom(mlir::kiln::CustomOp custom);
  mlir::LogicalResult emitRequireFinite(mlir::kiln::RequireFiniteOp required);
  /// Emits a collective operation of all processes of a group.
  mlir::LogicalResult emitCollective(mlir::Operation *op, uint32_t kind, mlir::kiln::Group group);
  mlir::LogicalResult emitSend(mlir::kiln::SendOp send);
  mlir::LogicalResult emitReceive(mlir::kiln::ReceiveOp receive);
  mlir::LogicalResult emitMove(mlir::Operation *op, uint32_t kind, mlir::kiln::Way way, mlir::Value value);
  void emitFinish(mlir::kiln::Group group);
  /// Emits a wait that a trace shows.
  void emitWait(mlir::Operation *op, mlir::kiln::Group group);
  mlir::LogicalResult emitBegin(mlir::kiln::BeginReduceOp op);
  mlir::LogicalResult emitIndex(mlir::Operation &op);

  /// Appends the components of a tensor as arguments of a kernel.
  mlir::LogicalResult addArguments(mlir::Value tensor, mlir::SmallVectorImpl<KernelArgument> &arguments);
  mlir::FailureOr<mlir::Value> addressOf(mlir::Value tensor);
  mlir::FailureOr<mlir::Value> bytesOf(mlir::RankedTensorType type);
  mlir::FailureOr<mlir::Value> bytesOf(mlir::ArrayRef<mlir::AffineExpr> extents, mlir::Type element);
  /// Returns how many of the last bytes of a value that is stored to a state were in no state before; at most all
  /// bytes.
  mlir::FailureOr<mlir::Value> freshBytesOf(mlir::Value value);
  /// Returns the address of a state for the op that reads or writes it.
  template <class Op> mlir::Value addressOfState(Op op) { return addressOfState(op, op.getName(), op.getCopies()); }
  mlir::Value addressOfState(mlir::Operation *op, mlir::StringRef name, int64_t copies);
  /// Returns where a state's memory begins. Its rows begin there too, unless the state slides.
  mlir::Value addressOfMemory(mlir::Operation *op, const StateInterface &state, int64_t copies);
  /// Returns the row at which a sliding state begins. The result is clamped, so that it is a valid row whatever the
  /// memory contains.
  mlir::Value positionOf(const StateInterface &state, mlir::Value memory);
  /// Returns the address of the first row after those of the state.
  mlir::Value addressOfAdded(mlir::kiln::SlideOp slide);
  mlir::FailureOr<mlir::Value> addressOfStep(mlir::kiln::LoopStep step, mlir::RankedTensorType slice);
  /// Returns the number of the layer whose copy a parameter or state at `op` is; null outside of repeats.
  mlir::Value layerAt(mlir::Operation *op);
  /// Returns the layer number for a trace: -1 outside of repeats. With pipeline stages, layers are counted over the
  /// whole model.
  mlir::Value tracedLayerAt(mlir::Operation *op);
  mlir::Value numberInPattern(mlir::Operation *op);
  void continueIfOk(mlir::Value status);
  /// Emits a branch: unless `isOk`, the function returns the status.
  void continueIf(mlir::Value isOk, mlir::Value status);
  void copyRows(mlir::Value target, mlir::Value source, mlir::Value rows, mlir::Value rowBytes,
                mlir::Value sourceStride);
  mlir::Value addressOfConstant(mlir::kiln::ConstantOp constant);
  mlir::Value addressOfRank(mlir::kiln::RankOp rank);
  mlir::Value addressOfText(mlir::StringRef text);
  /// Returns the address of constant data: one global of the module for each distinct value.
  mlir::Value addressOfData(mlir::Type type, mlir::Attribute value, unsigned alignment);
  /// Returns a function of the runtime, which is declared on first use.
  mlir::LLVM::LLVMFuncOp declare(mlir::StringRef name, mlir::Type result, mlir::ArrayRef<mlir::Type> parameters);
  mlir::FailureOr<const KernelReference *> findKernel(mlir::StringRef kernel);
  mlir::FailureOr<mlir::Value> addressOfKernel(mlir::StringRef kernel, mlir::kiln::CallOp call);
  mlir::FailureOr<mlir::Value> evaluate(mlir::AffineExpr expression, mlir::ArrayRef<mlir::Value> symbols);

  mlir::Value constant(mlir::Type type, int64_t value) {
    return mlir::LLVM::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, value));
  }
  mlir::Value add(mlir::Value a, mlir::Value b) { return mlir::LLVM::AddOp::create(builder, loc, a, b); }
  mlir::Value subtract(mlir::Value a, mlir::Value b) { return mlir::LLVM::SubOp::create(builder, loc, a, b); }
  mlir::Value atMost(mlir::Value value, mlir::Value most) {
    mlir::Value isLess = mlir::LLVM::ICmpOp::create(builder, loc, mlir::LLVM::ICmpPredicate::ult, value, most);
    return mlir::LLVM::SelectOp::create(builder, loc, isLess, value, most);
  }
  mlir::Value multiply(mlir::Value a, mlir::Value b) { return mlir::LLVM::MulOp::create(builder, loc, a, b); }
  mlir::Value byteAddress(mlir::Value base, mlir::Value offset) {
    return mlir::LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                                     mlir::ArrayRef<mlir::LLVM::GEPArg>{offset});
  }
  mlir::Value byteAddress(mlir::Value base, int64_t offset) {
    if (offset == 0)
      return base;
    if (offset < 1 << 28) // a GEPArg holds constants of 29 bits
      return mlir::LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                                       mlir::ArrayRef<mlir::LLVM::GEPArg>{static_cast<int32_t>(offset)});
    return byteAddress(base, constant(i64, offset));
  }
  mlir::Value addressOfField(abi::Struct structure, mlir::Value base, unsigned field) {
    return mlir::LLVM::GEPOp::create(builder, loc, pointer, abi::typeOf(structure, builder.getContext()), base,
                                     mlir::ArrayRef<mlir::LLVM::GEPArg>{0, static_cast<int32_t>(field)});
  }
  /// Loads a field of the frame; all fields are pointers.
  mlir::Value loadOfFrame(abi::frame::Field field) {
    return mlir::LLVM::LoadOp::create(builder, loc, pointer, addressOfField(abi::Struct::frame, frameArgument, field));
  }
  mlir::Value loadElement(mlir::Type type, mlir::Value array, int64_t index) {
    mlir::Value address = mlir::LLVM::GEPOp::create(builder, loc, pointer, type, array,
                                                    mlir::ArrayRef<mlir::LLVM::GEPArg>{static_cast<int32_t>(index)});
    return mlir::LLVM::LoadOp::create(builder, loc, type, address);
  }
  void storeOrder(mlir::Value isBackward) {
    mlir::LLVM::StoreOp::create(
        builder, loc, isBackward,
        addressOfField(abi::Struct::worker, loadOfFrame(abi::frame::worker), abi::worker::is_backward));
  }

  mlir::func::FuncOp entry;
  const HostCodeInput &input;
  mlir::ModuleOp host;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::Type pointer, i32, i64;

  mlir::LLVM::LLVMFuncOp function;
  bool beginsSums = false;                // whether collectives run in the background of kernels
  mlir::SmallVector<int64_t> outputs;     // for each result of the function, the number of the entry's argument
  mlir::Block *failed = nullptr;          // the block that returns its argument
  mlir::Value frameArgument, descriptors; // descriptors: of the tensors of a call
  llvm::DenseMap<mlir::Value, mlir::Value> indices; // index values of the entry -> i64
  mlir::SmallVector<mlir::Value> symbols;           // values of the module's symbols
  llvm::DenseMap<mlir::Operation *, mlir::Value>
      layers; // loop over layers -> number of the current layer, counted over all such loops around it
  llvm::DenseMap<mlir::Operation *, mlir::Value> steps; // loop -> index of its current slices
  mlir::Value sequence;                                 // the kiln_sequence_t, in kiln.each_sequence
  mlir::Value rowsBefore;                               // the rows of the sequences before it
};

} // namespace kiln
