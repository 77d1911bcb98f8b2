// SPDX-License-Identifier: Apache-2.0
//
// int SYMBOL(worker, i32 s0, .., address of a tensor, ..):
//   for each launch whose number of blocks is not 0
//     if it has a TMA variant: fill its tensor maps and parameters, call kiln_cuda_launch_tma, and, unless that
//       returns that the variant cannot be launched, continue after the launches that the variant replaces
//     fill its parameters
//     if (int result = kiln_cuda_launch(worker, &SYMBOL_module, function, blocks, 1, 1, parameters)) return result
//   return 0
#include "targets/cuda/plan/HostLauncher.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/object/BinaryInterface.h"
#include "compiler/object/Object.h"
#include "targets/target.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace kiln::cuda {

using namespace llvm;

namespace {

class HostLauncherBuilder {
public:
  HostLauncherBuilder(const LaunchPlan &plan, Module &module) : plan(plan), module(module), b(module.getContext()) {}

  void build(StringRef symbol, unsigned symbols, unsigned tensors);

private:
  Constant *constant(Constant *value, const Twine &name);
  Constant *arrayOf(ArrayRef<Constant *> values, const Twine &name);
  Constant *text(StringRef bytes, const Twine &name) {
    return constant(ConstantDataArray::getString(module.getContext(), bytes), name);
  }
  Constant *moduleOf(ArrayRef<Image> images, ArrayRef<DeviceFunction> functions, Constant *tma);
  GlobalVariable *createModule(StringRef name);
  Value *evaluate(mlir::AffineExpr expr, ArrayRef<Value *> extents);
  Value *valueOf(const Parameter &parameter);
  Value *parametersOf(ArrayRef<Parameter> parameters);
  Value *call(StringRef name, ArrayRef<Value *> arguments);
  void setField(Value *map, unsigned field, unsigned element, Value *value);
  Value *mapsOf(const TmaLaunch &launch);
  void emitTma(const TmaLaunch &launch, BasicBlock *next, PHINode *failure);
  void emit(const Launch &launch, BasicBlock *next, BasicBlock *afterTma);

  const LaunchPlan &plan;
  Module &module;
  IRBuilder<> b;
  Function *launcher = nullptr;
  GlobalVariable *deviceModule = nullptr;
  SmallVector<Value *> extents; // i64
  SmallVector<Value *> words;   // arguments as they are passed: extents, then tensors
  Value *scratch = nullptr;
};

Constant *HostLauncherBuilder::constant(Constant *value, const Twine &name) {
  return new GlobalVariable(module, value->getType(), /*isConstant=*/true, GlobalValue::PrivateLinkage, value, name);
}

Constant *HostLauncherBuilder::arrayOf(ArrayRef<Constant *> values, const Twine &name) {
  return constant(ConstantArray::get(ArrayType::get(values.front()->getType(), values.size()), values), name);
}

/// `tma`: the module of TMA variants, or null.
Constant *HostLauncherBuilder::moduleOf(ArrayRef<Image> ofPlan, ArrayRef<DeviceFunction> ofImages, Constant *tma) {
  LLVMContext &context = module.getContext();
  SmallVector<Constant *> images, functions;
  for (const Image &image : ofPlan)
    images.push_back(abi::StructConstant(abi::Struct::cuda_image, context)
                         .set(abi::cuda_image::text, text(image.text, "ptx"))
                         .set(abi::cuda_image::capability, image.capability)
                         .set(abi::cuda_image::is_for_that_alone, uint64_t(image.isForThatAlone))
                         .get());
  for (const DeviceFunction &function : ofImages)
    functions.push_back(abi::StructConstant(abi::Struct::cuda_function, context)
                            .set(abi::cuda_function::name, text(function.name, "name"))
                            .set(abi::cuda_function::threads, function.threads)
                            .set(abi::cuda_function::shared_bytes, function.sharedBytes)
                            .set(abi::cuda_function::cluster, function.cluster)
                            .set(abi::cuda_function::is_dependent_launch, uint64_t(function.isDependentLaunch))
                            .get());
  abi::StructConstant value(abi::Struct::cuda_module, context);
  value.set(abi::cuda_module::images, arrayOf(images, "images"))
      .set(abi::cuda_module::functions, arrayOf(functions, "functions"))
      .set(abi::cuda_module::image_count, images.size())
      .set(abi::cuda_module::function_count, functions.size());
  if (tma)
    value.set(abi::cuda_module::tma, tma);
  return value.get();
}

GlobalVariable *HostLauncherBuilder::createModule(StringRef name) {
  Constant *tma = plan.tmaImage ? constant(moduleOf(*plan.tmaImage, plan.tmaFunctions, nullptr), "mapped") : nullptr;
  Constant *value = moduleOf(plan.images, plan.functions, tma);
  return new GlobalVariable(module, value->getType(), /*isConstant=*/true, GlobalValue::ExternalLinkage, value, name);
}

/// i64 numbers, which are never negative, in the launcher.
struct LauncherArithmetic {
  using Value = llvm::Value *;
  IRBuilder<> &b;
  ArrayRef<Value> symbols;

  Value constant(int64_t number) { return b.getInt64(uint64_t(number)); }
  Value dim(unsigned) { llvm_unreachable("launches are expressions over symbols"); }
  Value symbol(unsigned position) { return symbols[position]; }
  Value add(Value x, Value y) { return b.CreateAdd(x, y); }
  Value multiply(Value x, Value y) { return b.CreateMul(x, y); }
  Value floorDivide(Value x, Value y) { return b.CreateUDiv(x, y); }
  Value ceilDivide(Value x, Value y) { return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(y, b.getInt64(1))), y); }
  Value modulo(Value x, Value y) { return b.CreateURem(x, y); }
};

Value *HostLauncherBuilder::evaluate(mlir::AffineExpr expr, ArrayRef<Value *> symbols) {
  return mlir::kiln::evaluateAffine(expr, LauncherArithmetic{b, symbols});
}

Value *HostLauncherBuilder::valueOf(const Parameter &parameter) {
  return parameter.kind == Parameter::Symbol   ? words[parameter.number]
         : parameter.kind == Parameter::Tensor ? words[extents.size() + parameter.number]
                                               : b.CreateConstGEP1_64(b.getInt8Ty(), scratch, parameter.number);
}

/// Returns an array of the addresses of the values. The run time fills in the addresses of tensor maps.
Value *HostLauncherBuilder::parametersOf(ArrayRef<Parameter> parameters) {
  IRBuilder<> first(&launcher->getEntryBlock(), launcher->getEntryBlock().begin());
  Value *array = first.CreateAlloca(ArrayType::get(b.getPtrTy(), parameters.size()));
  for (auto [number, parameter] : enumerate(parameters)) {
    if (parameter.kind == Parameter::Map)
      continue;
    Value *value = valueOf(parameter);
    Value *slot = first.CreateAlloca(value->getType());
    b.CreateStore(value, slot);
    b.CreateStore(slot, b.CreateConstGEP1_64(b.getPtrTy(), array, number));
  }
  return array;
}

/// Calls a function of the run time that returns an i32.
Value *HostLauncherBuilder::call(StringRef name, ArrayRef<Value *> arguments) {
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  auto *type = FunctionType::get(b.getInt32Ty(), types, false);
  return b.CreateCall(module.getOrInsertFunction(name, type), arguments);
}

/// Writes a field of a kiln_cuda_map_t; for an array, one of its elements.
void HostLauncherBuilder::setField(Value *map, unsigned field, unsigned element, Value *value) {
  StructType *type = abi::typeOf(abi::Struct::cuda_map, module.getContext());
  SmallVector<Value *> path{b.getInt32(0), b.getInt32(field)};
  if (type->getElementType(field)->isArrayTy())
    path.push_back(b.getInt32(element));
  b.CreateStore(value, b.CreateInBoundsGEP(type, map, path));
}

Value *HostLauncherBuilder::mapsOf(const TmaLaunch &launch) {
  IRBuilder<> first(&launcher->getEntryBlock(), launcher->getEntryBlock().begin());
  StructType *type = abi::typeOf(abi::Struct::cuda_map, module.getContext());
  Value *array = first.CreateAlloca(ArrayType::get(type, launch.maps.size()));
  for (auto [number, map] : enumerate(launch.maps)) {
    Value *at = b.CreateConstGEP1_64(type, array, number);
    setField(at, abi::cuda_map::address, 0, valueOf(map.tensor));
    setField(at, abi::cuda_map::rank, 0, b.getInt32(uint32_t(map.extents.size())));
    setField(at, abi::cuda_map::dtype, 0, b.getInt32(map.element));
    for (unsigned i = 0; i < map.extents.size(); ++i) {
      setField(at, abi::cuda_map::extents, i, evaluate(map.extents[i], extents));
      setField(at, abi::cuda_map::box, i, b.getInt32(map.box[i]));
      if (i > 0)
        setField(at, abi::cuda_map::pitches, i - 1, evaluate(map.pitches[i - 1], extents));
    }
  }
  return array;
}

/// Continues after the emitted code if the base variant is to be launched, or at `next` once the TMA variant has been.
void HostLauncherBuilder::emitTma(const TmaLaunch &launch, BasicBlock *next, PHINode *failure) {
  Value *blocks = b.CreateTrunc(evaluate(launch.blocks, extents), b.getInt32Ty());
  Value *result = call("kiln_cuda_launch_tma",
                       {launcher->getArg(0), deviceModule, b.getInt32(launch.function), blocks,
                        b.getInt32(uint32_t(launch.maps.size())), mapsOf(launch), parametersOf(launch.parameters)});
  BasicBlock *isNotLaunched = BasicBlock::Create(module.getContext(), "not_launched", launcher, next);
  BasicBlock *other = BasicBlock::Create(module.getContext(), "other", launcher, next);
  b.CreateCondBr(b.CreateICmpEQ(result, b.getInt32(0)), next, isNotLaunched);
  b.SetInsertPoint(isNotLaunched);
  b.CreateCondBr(b.CreateICmpEQ(result, b.getInt32(uint32_t(KILN_CUDA_NO_TMA))), other, failure->getParent());
  failure->addIncoming(result, isNotLaunched);
  b.SetInsertPoint(other);
}

/// Continues at `next` once the launch is done, or at `afterTma` once its TMA variant is.
void HostLauncherBuilder::emit(const Launch &launch, BasicBlock *next, BasicBlock *afterTma) {
  LLVMContext &context = module.getContext();
  BasicBlock *work = BasicBlock::Create(context, "work", launcher, next),
             *failed = BasicBlock::Create(context, "failed", launcher);
  PHINode *failure = IRBuilder<>(failed).CreatePHI(b.getInt32Ty(), 2);
  Value *blocks = evaluate(launch.blocks, extents);
  b.CreateCondBr(b.CreateICmpEQ(blocks, b.getInt64(0)), next, work);

  b.SetInsertPoint(work);
  if (launch.tma)
    emitTma(*launch.tma, afterTma, failure);
  Value *result = call("kiln_cuda_launch", {launcher->getArg(0), deviceModule, b.getInt32(launch.function),
                                            b.CreateTrunc(blocks, b.getInt32Ty()), b.getInt32(1), b.getInt32(1),
                                            parametersOf(launch.parameters)});
  failure->addIncoming(result, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpEQ(result, b.getInt32(0)), next, failed);

  b.SetInsertPoint(failed);
  b.CreateRet(failure);
}

void HostLauncherBuilder::build(StringRef symbol, unsigned symbols, unsigned tensors) {
  deviceModule = createModule((symbol + deviceModuleSuffix).str());
  SmallVector<Type *> types{b.getPtrTy()};
  types.append(symbols, b.getInt32Ty());
  types.append(tensors, b.getPtrTy());
  launcher =
      Function::Create(FunctionType::get(b.getInt32Ty(), types, false), GlobalValue::ExternalLinkage, symbol, module);
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "entry", launcher));
  for (Argument &argument : drop_begin(launcher->args())) {
    words.push_back(&argument);
    if (argument.getType()->isIntegerTy())
      extents.push_back(b.CreateSExt(&argument, b.getInt64Ty()));
  }
  StructType *worker = abi::typeOf(abi::Struct::worker, module.getContext());
  scratch = b.CreateLoad(b.getPtrTy(), b.CreateStructGEP(worker, launcher->getArg(0), abi::worker::top));
  SmallVector<BasicBlock *> after; // for each launch, the basic block after it
  for (size_t i = 0; i < plan.launches.size(); ++i)
    after.push_back(BasicBlock::Create(module.getContext(), "next", launcher));
  for (auto [number, launch] : enumerate(plan.launches)) {
    const size_t count = launch.tma ? launch.tma->count : 1;
    emit(launch, after[number], after[number + count - 1]);
    b.SetInsertPoint(after[number]);
  }
  b.CreateRet(b.getInt32(0));
}

} // namespace

Expected<std::string> compileHostLauncher(const LaunchPlan &plan, mlir::func::FuncOp kernel, StringRef symbol,
                                          StringRef hostTriple, StringRef hostCpu) {
  LLVMContext context;
  Module module(symbol, context);
  const KernelFunction view(kernel);
  HostLauncherBuilder(plan, module).build(symbol, view.numSymbols(), view.tensors().size() + kernel.getNumResults());
  return compileToObject(module, {hostTriple.str(), hostCpu.str()});
}

} // namespace kiln::cuda
