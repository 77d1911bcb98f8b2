// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/tile/Shared.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln::cuda::tile {

using namespace mlir;

static constexpr unsigned sharedMemory = 3; // the address space

Value addShared(Builder &b, Type element, int64_t count) {
  auto kernel = b.getInsertionBlock()->getParent()->getParentOfType<LLVM::LLVMFuncOp>();
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string name;
  for (int number = 0; name.empty() || module.lookupSymbol(name); ++number)
    name = (kernel.getName() + "_shared_" + Twine(number)).str();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(kernel);
    LLVM::GlobalOp::create(b, LLVM::LLVMArrayType::get(element, count), /*isConstant=*/false, LLVM::Linkage::Internal,
                           name, Attribute(), /*alignment=*/16, sharedMemory);
  }
  return LLVM::AddressOfOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), sharedMemory), name);
}

void syncBlock(Builder &b) { NVVM::Barrier0Op::create(b); }
void syncWarp(Builder &b) { NVVM::SyncWarpOp::create(b, b.integer(-1)); }

} // namespace kiln::cuda::tile
