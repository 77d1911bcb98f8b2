// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/tile/Builder.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln::cuda::tile {

using namespace mlir;

const llvm::StringRef weightMark = LLVM::LLVMDialect::getNonNullAttrName();

static constexpr unsigned globalMemory = 1; // the address space
static constexpr auto noOverflow = arith::IntegerOverflowFlags::nsw;

void loadDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect,
                      NVVM::NVVMDialect, scf::SCFDialect>();
}

Builder::Builder(ModuleOp module) : ImplicitLocOpBuilder(module.getLoc(), module.getContext()) {
  setInsertionPointToEnd(module.getBody());
}

//===- Kernels -----------------------------------------------------------===//

void Builder::beginKernel(StringRef name, const KernelLaunch &launch) {
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()), {});
  kernel = LLVM::LLVMFuncOp::create(*this, name, type);
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(), getDenseI32ArrayAttr({int32_t(launch.threads)}));
  if (launch.blocks > 0)
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), getI32IntegerAttr(int32_t(launch.blocks)));
  if (launch.cluster > 1)
    kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(), getDenseI32ArrayAttr({int32_t(launch.cluster), 1, 1}));
  accesses.clear();
  setInsertionPointToStart(kernel.addEntryBlock(*this));
  if (launch.isDependentLaunch && launch.waitsAtOnce)
    waitForDependencies();
}

void Builder::launchDependents() { NVVM::GriddepcontrolOp::create(*this, NVVM::GridDepActionKind::launch_dependents); }

void Builder::waitForDependencies() { NVVM::GriddepcontrolOp::create(*this, NVVM::GridDepActionKind::wait); }

Value Builder::addParameter(Type type, Access access) {
  accesses.push_back(access);
  return kernel.getBody().front().addArgument(type, getLoc());
}

Value Builder::addTensorMap() { return addParameter(LLVM::LLVMPointerType::get(getContext()), Access::Map); }

static void describeTensorMap(LLVM::LLVMFuncOp kernel, unsigned number) {
  mlir::Builder b(kernel.getContext());
  auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
  kernel.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(bytes));
  kernel.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(64));
  kernel.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr());
}

void Builder::endKernel() {
  LLVM::ReturnOp::create(*this, ValueRange());
  Block &entry = kernel.getBody().front();
  kernel.setFunctionType(
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()), llvm::to_vector(entry.getArgumentTypes())));
  for (auto [number, access] : llvm::enumerate(accesses))
    if (access == Access::Map) {
      describeTensorMap(kernel, number);
    } else if (access != Access::Any && isa<LLVM::LLVMPointerType>(entry.getArgument(number).getType())) {
      kernel.setArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName(), getUnitAttr());
      kernel.setArgAttr(number, LLVM::LLVMDialect::getReadonlyAttrName(), getUnitAttr());
      if (access == Access::Weight)
        kernel.setArgAttr(number, weightMark, getUnitAttr());
    }
  setInsertionPointAfter(kernel);
}

/// The code generator cannot select the op for this.
void Builder::prefetch(Value address) {
  LLVM::InlineAsmOp::create(*this, TypeRange(), address, prefetchText, "l", /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
                            ArrayAttr());
}

Value Builder::threadId() { return NVVM::ThreadIdXOp::create(*this, getI32Type()); }
Value Builder::blockId() { return NVVM::BlockIdXOp::create(*this, getI32Type()); }

//===- Integers ----------------------------------------------------------===//

Type Builder::pointer() { return LLVM::LLVMPointerType::get(getContext(), globalMemory); }

Value Builder::integer(Type type, int64_t value) {
  return arith::ConstantOp::create(*this,
                                   IntegerAttr::get(type, APInt(type.getIntOrFloatBitWidth(), value, true, true)));
}

Value Builder::add(Value x, Value y) { return createOrFold<arith::AddIOp>(x, y, noOverflow); }
Value Builder::sub(Value x, Value y) { return createOrFold<arith::SubIOp>(x, y, noOverflow); }
Value Builder::mul(Value x, Value y) { return createOrFold<arith::MulIOp>(x, y, noOverflow); }
Value Builder::div(Value x, Value y) { return createOrFold<arith::DivUIOp>(x, y); }
Value Builder::rem(Value x, Value y) { return createOrFold<arith::RemUIOp>(x, y); }

Value Builder::clamp(Value x, Value size) {
  Value last = createOrFold<arith::SubIOp>(size, integer(size.getType(), 1));
  return createOrFold<arith::MaxSIOp>(createOrFold<arith::MinSIOp>(x, last), integer(size.getType(), 0));
}

Value Builder::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return createOrFold<arith::CmpIOp>(predicate, x, y);
}

Value Builder::widen(Value x) { return x.getType().isInteger(64) ? x : createOrFold<arith::ExtSIOp>(getI64Type(), x); }

//===- Memory ------------------------------------------------------------===//

Value Builder::addressOf(Type stored, Value address, Value offset) {
  return LLVM::GEPOp::create(*this, address.getType(), stored, address, ValueRange(widen(offset)),
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value Builder::load(Type element, Value address, Value offset) {
  if (!element.isInteger(1))
    return LLVM::LoadOp::create(*this, element, addressOf(element, address, offset));
  Value byte = load(getI8Type(), address, offset);
  return compare(arith::CmpIPredicate::ne, byte, integer(getI8Type(), 0));
}

void Builder::store(Value value, Value address, Value offset) {
  if (value.getType().isInteger(1))
    value = createOrFold<arith::ExtUIOp>(getI8Type(), value);
  LLVM::StoreOp::create(*this, value, addressOf(value.getType(), address, offset));
}

//===- Control -----------------------------------------------------------===//

Values Builder::loop(Value count, ValueRange initial, function_ref<Values(Value, ValueRange)> body) {
  Type type = count.getType();
  auto loop = scf::ForOp::create(*this, integer(type, 0), count, integer(type, 1), initial);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  Values results = body(loop.getInductionVar(), loop.getRegionIterArgs());
  setInsertionPointToEnd(loop.getBody());
  if (!initial.empty())
    scf::YieldOp::create(*this, results);
  return Values(loop.getResults());
}

void Builder::ifThen(Value condition, function_ref<void()> body) {
  auto choice = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(choice.thenBlock());
  body();
}

Value Builder::ifElse(Value condition, Type type, function_ref<Value()> yes, function_ref<Value()> no) {
  return ifElse(condition, TypeRange(type), [&] { return Values{yes()}; }, [&] { return Values{no()}; }).front();
}

Values Builder::ifElse(Value condition, TypeRange types, function_ref<Values()> yes, function_ref<Values()> no) {
  auto choice = scf::IfOp::create(*this, types, condition, /*withElseRegion=*/true);
  for (auto [block, branch] : {std::pair(choice.thenBlock(), yes), std::pair(choice.elseBlock(), no)}) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(block);
    Values values = branch();
    if (!types.empty())
      scf::YieldOp::create(*this, values);
  }
  return Values(choice.getResults());
}

//===- Warps -------------------------------------------------------------===//

Value Builder::shuffleXor(Value value, int32_t bits) {
  return NVVM::ShflOp::create(*this, value.getType(), integer(-1), value, integer(bits), integer(0x1f),
                              NVVM::ShflKind::bfly, UnitAttr());
}

} // namespace kiln::cuda::tile
