// SPDX-License-Identifier: Apache-2.0
//
// int SYMBOL(worker, i32 s0, .., address of a tensor, ..):
//   for each launch whose number of blocks is not 0
//     fill its parameters
//     if (int result = kiln_cuda_launch(worker, &SYMBOL_module, function, blocks, 1, 1, parameters)) return result
//   return 0
#include "targets/cuda/Stub.h"

#include "compiler/object/BinaryInterface.h"
#include "compiler/object/Object.h"
#include "targets/target.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace kiln::cuda {

using namespace llvm;

namespace {

class StubBuilder {
public:
  StubBuilder(const DevicePlan &plan, Module &module) : plan(plan), module(module), b(module.getContext()) {}

  void build(StringRef symbol, unsigned symbols, unsigned tensors);

private:
  Constant *constant(Constant *value, const Twine &name);
  Constant *arrayOf(ArrayRef<Constant *> values, const Twine &name);
  Constant *text(StringRef bytes, const Twine &name) {
    return constant(ConstantDataArray::getString(module.getContext(), bytes), name);
  }
  GlobalVariable *createModule(StringRef name);
  Value *evaluate(mlir::AffineExpr expr, ArrayRef<Value *> extents);
  Value *parametersOf(const Launch &launch);
  void emit(const Launch &launch, BasicBlock *next);

  const DevicePlan &plan;
  Module &module;
  IRBuilder<> b;
  Function *stub = nullptr;
  GlobalVariable *deviceModule = nullptr;
  SmallVector<Value *> extents; // i64
  SmallVector<Value *> words;   // the arguments as they are passed, extents and then tensors
  Value *scratch = nullptr;
};

Constant *StubBuilder::constant(Constant *value, const Twine &name) {
  return new GlobalVariable(module, value->getType(), /*isConstant=*/true, GlobalValue::PrivateLinkage, value, name);
}

Constant *StubBuilder::arrayOf(ArrayRef<Constant *> values, const Twine &name) {
  return constant(ConstantArray::get(ArrayType::get(values.front()->getType(), values.size()), values), name);
}

GlobalVariable *StubBuilder::createModule(StringRef name) {
  LLVMContext &context = module.getContext();
  SmallVector<Constant *> images, functions;
  for (const Image &image : plan.images)
    images.push_back(abi::StructConstant(abi::Struct::cuda_image, context)
                         .set(abi::cuda_image::text, text(image.text, "ptx"))
                         .set(abi::cuda_image::capability, image.capability)
                         .set(abi::cuda_image::is_for_that_alone, uint64_t(image.isForThatAlone))
                         .get());
  for (const DeviceFunction &function : plan.functions)
    functions.push_back(abi::StructConstant(abi::Struct::cuda_function, context)
                            .set(abi::cuda_function::name, text(function.name, "name"))
                            .set(abi::cuda_function::threads, function.threads)
                            .set(abi::cuda_function::shared_bytes, function.sharedBytes)
                            .get());
  Constant *value = abi::StructConstant(abi::Struct::cuda_module, context)
                        .set(abi::cuda_module::images, arrayOf(images, "images"))
                        .set(abi::cuda_module::functions, arrayOf(functions, "functions"))
                        .set(abi::cuda_module::image_count, images.size())
                        .set(abi::cuda_module::function_count, functions.size())
                        .get();
  return new GlobalVariable(module, value->getType(), /*isConstant=*/true, GlobalValue::ExternalLinkage, value, name);
}

Value *StubBuilder::evaluate(mlir::AffineExpr expr, ArrayRef<Value *> symbols) {
  if (auto constant = dyn_cast<mlir::AffineConstantExpr>(expr))
    return b.getInt64(constant.getValue());
  if (auto symbol = dyn_cast<mlir::AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<mlir::AffineBinaryOpExpr>(expr);
  Value *x = evaluate(binary.getLHS(), symbols), *y = evaluate(binary.getRHS(), symbols);
  switch (expr.getKind()) {
  case mlir::AffineExprKind::Add:
    return b.CreateAdd(x, y);
  case mlir::AffineExprKind::Mul:
    return b.CreateMul(x, y);
  case mlir::AffineExprKind::Mod:
    return b.CreateURem(x, y);
  case mlir::AffineExprKind::FloorDiv:
    return b.CreateUDiv(x, y);
  default: // rounded up
    return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(y, b.getInt64(1))), y);
  }
}

/// An array of the addresses of the values.
Value *StubBuilder::parametersOf(const Launch &launch) {
  IRBuilder<> first(&stub->getEntryBlock(), stub->getEntryBlock().begin());
  Value *array = first.CreateAlloca(ArrayType::get(b.getPtrTy(), launch.parameters.size()));
  for (auto [number, parameter] : enumerate(launch.parameters)) {
    Value *value = parameter.kind == Parameter::Symbol ? words[parameter.number]
                   : parameter.kind == Parameter::Tensor
                       ? words[extents.size() + parameter.number]
                       : b.CreateConstGEP1_64(b.getInt8Ty(), scratch, parameter.number);
    Value *slot = first.CreateAlloca(value->getType());
    b.CreateStore(value, slot);
    b.CreateStore(slot, b.CreateConstGEP1_64(b.getPtrTy(), array, number));
  }
  return array;
}

/// Goes on at `next` once it is launched.
void StubBuilder::emit(const Launch &launch, BasicBlock *next) {
  LLVMContext &context = module.getContext();
  BasicBlock *work = BasicBlock::Create(context, "work", stub, next),
             *failed = BasicBlock::Create(context, "failed", stub);
  Value *blocks = evaluate(launch.blocks, extents);
  b.CreateCondBr(b.CreateICmpEQ(blocks, b.getInt64(0)), next, work);

  b.SetInsertPoint(work);
  Type *i32 = b.getInt32Ty(), *pointer = b.getPtrTy();
  auto *type = FunctionType::get(i32, {pointer, pointer, i32, i32, i32, i32, pointer}, false);
  Value *result = b.CreateCall(module.getOrInsertFunction("kiln_cuda_launch", type),
                               {stub->getArg(0), deviceModule, b.getInt32(launch.function), b.CreateTrunc(blocks, i32),
                                b.getInt32(1), b.getInt32(1), parametersOf(launch)});
  b.CreateCondBr(b.CreateICmpEQ(result, b.getInt32(0)), next, failed);

  b.SetInsertPoint(failed);
  b.CreateRet(result);
}

void StubBuilder::build(StringRef symbol, unsigned symbols, unsigned tensors) {
  deviceModule = createModule((symbol + deviceModuleSuffix).str());
  SmallVector<Type *> types{b.getPtrTy()};
  types.append(symbols, b.getInt32Ty());
  types.append(tensors, b.getPtrTy());
  stub =
      Function::Create(FunctionType::get(b.getInt32Ty(), types, false), GlobalValue::ExternalLinkage, symbol, module);
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "entry", stub));
  for (Argument &argument : drop_begin(stub->args())) {
    words.push_back(&argument);
    if (argument.getType()->isIntegerTy())
      extents.push_back(b.CreateSExt(&argument, b.getInt64Ty()));
  }
  StructType *worker = abi::typeOf(abi::Struct::worker, module.getContext());
  scratch = b.CreateLoad(b.getPtrTy(), b.CreateStructGEP(worker, stub->getArg(0), abi::worker::top));
  for (const Launch &launch : plan.launches) {
    BasicBlock *next = BasicBlock::Create(module.getContext(), "next", stub);
    emit(launch, next);
    b.SetInsertPoint(next);
  }
  b.CreateRet(b.getInt32(0));
}

} // namespace

Expected<std::string> compileStub(const DevicePlan &plan, mlir::func::FuncOp kernel, StringRef symbol,
                                  StringRef hostTriple, StringRef hostCpu) {
  LLVMContext context;
  Module module(symbol, context);
  const unsigned symbols = count_if(kernel.getArgumentTypes(), [](mlir::Type type) { return type.isIndex(); });
  StubBuilder(plan, module).build(symbol, symbols, kernel.getNumArguments() - symbols + kernel.getNumResults());
  return compileToObject(module, hostTriple, hostCpu);
}

} // namespace kiln::cuda
