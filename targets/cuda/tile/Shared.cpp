// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/tile/Shared.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln::cuda::tile {

using namespace mlir;

static constexpr unsigned sharedSpace = 3; // the address space
static constexpr StringLiteral sharedName = "kiln_shared";

/// Declares the memory once per module: all such declarations are the same memory.
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

Values loadFour(Builder &b, Value address) { return loadVector(b, b.getF32Type(), 4, address); }

void storeOne(Builder &b, Value value, Value address) { LLVM::StoreOp::create(b, value, address); }

void storeFour(Builder &b, ArrayRef<Value> values, Value address) { storeVector(b, values, address); }

Values loadVector(Builder &b, Type element, int64_t count, Value address) {
  const unsigned bytes = unsigned(count) * element.getIntOrFloatBitWidth() / 8;
  Value vector = LLVM::LoadOp::create(b, VectorType::get(count, element), address, /*alignment=*/bytes);
  Values values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractElementOp::create(b, vector, b.integer(i)));
  return values;
}

Values loadFloats(Builder &b, Type element, int64_t count, Value address) {
  Values values = loadVector(b, element, count, address);
  for (Value &value : values)
    value = element.isF32() ? value : b.createOrFold<arith::ExtFOp>(b.getF32Type(), value);
  return values;
}

void storeVector(Builder &b, ArrayRef<Value> values, Value address) {
  Type element = values.front().getType();
  Value vector = LLVM::UndefOp::create(b, VectorType::get(int64_t(values.size()), element));
  for (auto [i, value] : llvm::enumerate(values))
    vector = LLVM::InsertElementOp::create(b, vector, value, b.integer(int64_t(i)));
  LLVM::StoreOp::create(b, vector, address, unsigned(values.size()) * element.getIntOrFloatBitWidth() / 8);
}

Value isMultiple(Builder &b, Value address, int64_t bytes) {
  Value bits = LLVM::PtrToIntOp::create(b, b.getI64Type(), address);
  Value rest = b.both(bits, b.integer(b.getI64Type(), bytes - 1));
  return b.compare(arith::CmpIPredicate::eq, rest, b.integer(b.getI64Type(), 0));
}

void barrier(Builder &b) { NVVM::BarrierOp::create(b); }

/// Copies of 16 bytes bypass the L1 cache, which has no use for them.
void copyBytesAsync(Builder &b, Value to, Value from, int64_t bytes, Value isThere) {
  const auto kind = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
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
