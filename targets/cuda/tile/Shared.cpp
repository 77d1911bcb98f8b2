// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/tile/Shared.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln::cuda::tile {

using namespace mlir;

static constexpr unsigned sharedSpace = 3; // the address space
static constexpr StringLiteral sharedName = "kiln_shared";

/// One of the module: all that is declared so is the same memory.
Value sharedMemory(Builder &b, int64_t alignment) {
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(sharedName)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, type, /*isConstant=*/false, LLVM::Linkage::External, sharedName, Attribute(),
                           uint64_t(alignment), sharedSpace);
  }
  return LLVM::AddressOfOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), sharedSpace), sharedName);
}

Value advance(Builder &b, Value address, Value count) { return b.addressOf(b.getF32Type(), address, count); }

Value advance(Builder &b, Value address, int64_t count) {
  return LLVM::GEPOp::create(b, address.getType(), b.getF32Type(), address,
                             ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(int32_t(count))}, LLVM::GEPNoWrapFlags::inbounds);
}

Value loadOne(Builder &b, Value address) { return LLVM::LoadOp::create(b, b.getF32Type(), address); }

Values loadFour(Builder &b, Value address) {
  Value vector = LLVM::LoadOp::create(b, VectorType::get(4, b.getF32Type()), address, /*alignment=*/16);
  Values values;
  for (int i = 0; i < 4; ++i)
    values.push_back(LLVM::ExtractElementOp::create(b, vector, b.integer(i)));
  return values;
}

void storeOne(Builder &b, Value value, Value address) { LLVM::StoreOp::create(b, value, address); }

void storeFour(Builder &b, ArrayRef<Value> values, Value address) {
  Value vector = LLVM::UndefOp::create(b, VectorType::get(4, b.getF32Type()));
  for (int i = 0; i < 4; ++i)
    vector = LLVM::InsertElementOp::create(b, vector, values[i], b.integer(i));
  LLVM::StoreOp::create(b, vector, address, /*alignment=*/16);
}

void barrier(Builder &b) { NVVM::BarrierOp::create(b); }

/// Four go past the first cache, which has no use for them.
void copyAsync(Builder &b, Value to, Value from, int64_t count, Value isThere) {
  const auto kind = count == 4 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  const int64_t bytes = count * 4;
  NVVM::CpAsyncOp::create(b, to, from, uint32_t(bytes), kind, b.select(isThere, b.integer(bytes), b.integer(0)));
}

void commitCopies(Builder &b) { NVVM::CpAsyncCommitGroupOp::create(b); }

void awaitCopies(Builder &b, int64_t groups) { NVVM::CpAsyncWaitGroupOp::create(b, uint32_t(groups)); }

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
                           name, Attribute(), /*alignment=*/16, sharedSpace);
  }
  return LLVM::AddressOfOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), sharedSpace), name);
}

void syncWarp(Builder &b) { NVVM::SyncWarpOp::create(b, b.integer(-1)); }

} // namespace kiln::cuda::tile
