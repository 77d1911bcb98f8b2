// SPDX-License-Identifier: Apache-2.0
//
// Emits calls of custom functions, which the program defines: the dynamic dimensions, then pointers to the operands, to
// the results and to the workspace. CustomFunctions.cpp writes the prototype.
#include "compiler/hostcode/HostEmitter.h"
#include "compiler/library/CustomFunctions.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

LogicalResult HostEmitter::emitCustom(kd::CustomOp custom) {
  if (input.target.memorySpace != KILN_MEMORY_HOST)
    return custom.emitOpError("has host code for CPUs only");
  SmallVector<Value> arguments;
  for (unsigned position : custom.getSymbolPositions())
    arguments.push_back(symbols[position]);
  Value bytes = constant(i64, 0);
  for (Value tensor : llvm::concat<Value>(llvm::to_vector(custom.getInputs()), llvm::to_vector(custom.getResults()))) {
    FailureOr<Value> address = addressOf(tensor), size = bytesOf(cast<RankedTensorType>(tensor.getType()));
    if (llvm::failed(address) || llvm::failed(size))
      return failure();
    arguments.push_back(*address);
    if (tensor != custom.getMemory())
      bytes = add(bytes, *size);
  }
  const std::string symbol = customSymbol(input.model.name, custom.getFunction().str());
  emitIfTraced([&](Value tracing) { emitTraceBegin(tracing, addressOfText(symbol), custom, constant(i64, 0), bytes); });
  LLVM::CallOp::create(
      builder, loc,
      declare(symbol, LLVM::LLVMVoidType::get(builder.getContext()), llvm::to_vector(TypeRange(ValueRange(arguments)))),
      arguments);
  emitTraceEnd();
  return success();
}

} // namespace kiln
