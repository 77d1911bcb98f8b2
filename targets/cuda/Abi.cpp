// SPDX-License-Identifier: Apache-2.0
//
// A tensor is passed as the address of its first element; a kernel gets the sizes that it needs as index arguments.
#include "targets/cuda/Abi.h"

namespace kiln::cuda {

using namespace mlir;

namespace {

class CudaAbi : public KernelAbi {
public:
  StringRef hookPrefix() const override { return "kiln_"; }
  int64_t descriptorBytes(int64_t) const override { return 0; }

  LLVM::LLVMFunctionType functionType(TypeRange arguments) const override {
    assert(!arguments.empty() && "a kernel has a result");
    MLIRContext *context = arguments.front().getContext();
    Type i32 = IntegerType::get(context, 32), pointer = LLVM::LLVMPointerType::get(context);
    SmallVector<Type> types{pointer};
    for (Type argument : arguments)
      types.push_back(argument.isIndex() ? i32 : pointer);
    return LLVM::LLVMFunctionType::get(i32, types);
  }

  Value emitCall(OpBuilder &builder, Location loc, Value kernel, Value worker, ArrayRef<KernelArgument> arguments,
                 Value) const override {
    SmallVector<Value> operands{kernel, worker};
    SmallVector<Type> types;
    for (const KernelArgument &argument : arguments) {
      const bool isExtent = !argument.element;
      types.push_back(isExtent ? Type(builder.getIndexType()) : argument.value.getType());
      operands.push_back(isExtent ? LLVM::TruncOp::create(builder, loc, builder.getI32Type(), argument.value)
                                  : argument.value);
    }
    return LLVM::CallOp::create(builder, loc, functionType(types), operands).getResult();
  }

  uint64_t describe(void *address, Type, ArrayRef<int64_t>, char *) const override {
    return reinterpret_cast<uint64_t>(address);
  }
};

} // namespace

const KernelAbi &cudaAbi() {
  static const CudaAbi abi;
  return abi;
}

} // namespace kiln::cuda
