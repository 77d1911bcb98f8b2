// SPDX-License-Identifier: Apache-2.0
//
// What writes host code: kernels' calls and memory in HostCode.cpp, loops and states in HostLoops.cpp.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/emit/HostCode.h"
#include "compiler/object/BinaryInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kiln {

/// One entry's host function.
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
  /// Where the call of the entry is traced, what `tell` emits runs.
  void emitIfTraced(llvm::function_ref<void(mlir::Value tracing)> tell);
  void emitTraceBegin(mlir::Value tracing, mlir::Value name, mlir::Operation *op, mlir::Value flops, mlir::Value bytes);
  void emitTraceEnd();
  /// What a trace gets before a kernel; `forms`: whether one is called instead, and its function.
  mlir::LogicalResult emitTraceBegin(mlir::kiln::CallOp call, llvm::ArrayRef<mlir::Value> extents,
                                     llvm::ArrayRef<std::pair<mlir::Value, llvm::StringRef>> forms);
  mlir::LogicalResult emitLoop(mlir::kiln::LoopInterface loop);
  mlir::LogicalResult emitIteration(mlir::kiln::LoopInterface loop, mlir::Value index, mlir::Value count);
  void waitForSent(mlir::kiln::LoopInterface loop);
  /// A loop that is ahead, and the one that follows it.
  mlir::LogicalResult emitTogether(mlir::kiln::ScanOp ahead);
  /// Code for each number below `count`, which gets a value that it gives the next one; 0 first.
  mlir::LogicalResult
  emitCounted(mlir::Value count,
              llvm::function_ref<mlir::FailureOr<mlir::Value>(mlir::Value index, mlir::Value value)> emitOne);
  mlir::LogicalResult emitIf(mlir::Value condition, llvm::function_ref<mlir::LogicalResult()> emitThen);
  /// The stage's number.
  mlir::Value stage();
  void enterSequence(mlir::kiln::EachSequenceOp loop, mlir::Value index, mlir::Value rows);
  void leaveSequence(mlir::ArrayRef<mlir::Value> symbolsOutside);
  void setSymbol(unsigned position, mlir::Value value);
  /// The row of the state that is written first.
  mlir::FailureOr<mlir::Value> addressOfAppended(mlir::kiln::AppendOp append);
  mlir::FailureOr<mlir::Value> addressOfRows(mlir::kiln::SliceOp slice);
  mlir::LogicalResult emitAppend(mlir::kiln::AppendOp append);
  mlir::LogicalResult emitSlide(mlir::kiln::SlideOp slide);
  mlir::LogicalResult emitStore(mlir::kiln::StoreOp store);
  /// What a store does whose rows stay where they are.
  mlir::LogicalResult emitAdvance(mlir::kiln::StoreOp store, mlir::kiln::SlideOp slide);
  /// Sets small floats to 0 among the last bytes.
  mlir::LogicalResult emitFlush(mlir::kiln::StoreOp store, mlir::Value end, mlir::Value bytes);
  mlir::LogicalResult emitAssign(mlir::kiln::AssignOp assign);
  mlir::LogicalResult emitConcat(mlir::kiln::ConcatOp concat);
  mlir::LogicalResult emitScatterAdd(mlir::kiln::ScatterAddOp scatter);
  mlir::LogicalResult emitRequireFinite(mlir::kiln::RequireFiniteOp required);
  /// What all processes of a group do together.
  mlir::LogicalResult emitCollective(mlir::Operation *op, uint32_t kind, mlir::kiln::Group group);
  mlir::LogicalResult emitSend(mlir::kiln::SendOp send);
  mlir::LogicalResult emitReceive(mlir::kiln::ReceiveOp receive);
  mlir::LogicalResult emitMove(mlir::Operation *op, uint32_t kind, mlir::kiln::Way way, mlir::Value value);
  void emitFinish(mlir::kiln::Group group);
  /// Seen in a trace.
  void emitWait(mlir::Operation *op, mlir::kiln::Group group);
  mlir::LogicalResult emitBegin(mlir::kiln::BeginReduceOp op);
  mlir::LogicalResult emitIndex(mlir::Operation &op);

  /// The parts of a tensor as arguments of a kernel.
  mlir::LogicalResult addArguments(mlir::Value tensor, mlir::SmallVectorImpl<KernelArgument> &arguments);
  mlir::FailureOr<mlir::Value> addressOf(mlir::Value tensor);
  mlir::FailureOr<mlir::Value> bytesOf(mlir::RankedTensorType type);
  mlir::FailureOr<mlir::Value> bytesOf(mlir::ArrayRef<mlir::AffineExpr> extents, mlir::Type element);
  /// How many of the last bytes of what a state gets were in no state before, at most all.
  mlir::FailureOr<mlir::Value> freshBytesOf(mlir::Value value);
  /// By the op that reads or writes the state.
  template <class Op> mlir::Value addressOfState(Op op) { return addressOfState(op, op.getName(), op.getCopies()); }
  mlir::Value addressOfState(mlir::Operation *op, mlir::StringRef name, int64_t copies);
  /// Where its memory begins, which is where its rows do unless it slides.
  mlir::Value addressOfMemory(mlir::Operation *op, const StateInterface &state, int64_t copies);
  /// The row that a state that slides begins at; whatever is in memory, it is one of those that it may begin at.
  mlir::Value positionOf(const StateInterface &state, mlir::Value memory);
  /// The first row after those of the state.
  mlir::Value addressOfAdded(mlir::kiln::SlideOp slide);
  mlir::FailureOr<mlir::Value> addressOfStep(mlir::kiln::LoopStep step, mlir::RankedTensorType slice);
  /// The number of the layer whose copy a parameter or state of this place is; null outside of repeats.
  mlir::Value layerAt(mlir::Operation *op);
  /// The number that a trace has for it: -1 outside of repeats, and of a stage's layers that among all of the model's.
  mlir::Value tracedLayerAt(mlir::Operation *op);
  void continueIfOk(mlir::Value status);
  /// Else the function ends with the status.
  void continueIf(mlir::Value isOk, mlir::Value status);
  void copyRows(mlir::Value target, mlir::Value source, mlir::Value rows, mlir::Value rowBytes,
                mlir::Value sourceStride);
  mlir::Value addressOfConstant(mlir::kiln::ConstantOp constant);
  mlir::Value addressOfRank(mlir::kiln::RankOp rank);
  mlir::Value addressOfText(mlir::StringRef text);
  /// Of data of the module: one global for each distinct value.
  mlir::Value addressOfData(mlir::Type type, mlir::Attribute value, unsigned alignment);
  /// A function of the run time.
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
    if (offset < 1 << 28) // a GEPArg has 29 bits for a constant
      return mlir::LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                                       mlir::ArrayRef<mlir::LLVM::GEPArg>{static_cast<int32_t>(offset)});
    return byteAddress(base, constant(i64, offset));
  }
  mlir::Value addressOfField(abi::Struct structure, mlir::Value base, unsigned field) {
    return mlir::LLVM::GEPOp::create(builder, loc, pointer, abi::typeOf(structure, builder.getContext()), base,
                                     mlir::ArrayRef<mlir::LLVM::GEPArg>{0, static_cast<int32_t>(field)});
  }
  /// A field of the frame; all are pointers.
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
  bool beginsSums = false;                          // which are made while kernels run
  mlir::SmallVector<int64_t> outputs;               // the entry's arguments that the function's results are
  mlir::Block *failed = nullptr;                    // returns its argument
  mlir::Value frameArgument, descriptors;           // of the tensors of a call
  llvm::DenseMap<mlir::Value, mlir::Value> indices; // index values of the entry -> i64
  mlir::SmallVector<mlir::Value> symbols;           // the module's symbols
  llvm::DenseMap<mlir::Operation *, mlir::Value>
      layers; // loop over layers -> number of the layer over all such loops around it
  llvm::DenseMap<mlir::Operation *, mlir::Value> steps; // loop -> the index of the slices that it is at
  mlir::Value sequence;                                 // in kiln.each_sequence: the kiln_sequence_t
  mlir::Value rowsBefore;                               // and the rows of the sequences before it
};

} // namespace kiln
