// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/HostStage.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/StageRoles.h"
#include "compiler/hostcode/HostCode.h"
#include "compiler/package/DeriveHere.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Linker/Linker.h"

using namespace mlir;

namespace kiln {

namespace {

/// Compiles the glue of one target.
class TargetGlue {
public:
  TargetGlue(const CompileContext &context, const ModelInterface &model, TargetModule &lowered, Variant &variant,
             const WeightLayout &weights, ArrayRef<KernelObject> objects, HostModule &host)
      : context(context), model(model), lowered(lowered), variant(variant), weights(weights), host(host),
        module(ModuleOp::create(lowered.module->getLoc())) {
    for (auto [function, object] : llvm::zip_equal(lowered.kernels(), objects)) {
      const KernelAbi &abi = lowered.target->compilerOf(function).abi();
      kernels[function.getName()] = {librarySymbol(model.name, *lowered.target, function.getName()), &abi};
      scratch[function.getName()] = {object.scratchBytes, object.taskBytes};
      host.hookPrefixes.insert(abi.hookPrefix());
    }
  }

  LogicalResult compile();

private:
  struct Scratch {
    int64_t bytes = 0, taskBytes = 0;
  };
  FailureOr<EntryCode> compileBody(const EntryInterface &entry, StringRef name, uint32_t role);
  void measureScratch(func::FuncOp function, EntryCode &code) const;
  LogicalResult link();

  const CompileContext &context;
  const ModelInterface &model;
  TargetModule &lowered;
  Variant &variant;
  const WeightLayout &weights;
  HostModule &host;
  OwningOpRef<ModuleOp> module; // of the LLVM dialect
  llvm::StringMap<KernelReference> kernels;
  llvm::StringMap<Scratch> scratch;
  ConstantPool constants;
};

/// The scratch memory of an entry is that of the kernel that needs most.
void TargetGlue::measureScratch(func::FuncOp function, EntryCode &code) const {
  auto add = [&](StringRef callee) {
    auto kernel = scratch.find(callee);
    if (kernel == scratch.end())
      return;
    code.scratchBytes = std::max<uint64_t>(code.scratchBytes, kernel->second.bytes);
    code.taskBytes = std::max<uint64_t>(code.taskBytes, kernel->second.taskBytes);
  };
  function.walk([&](mlir::kiln::CallOp call) {
    add(call.getCallee());
    if (auto forms = lowered.forms.find(call.getCallee()); forms != lowered.forms.end())
      for (const KernelVariant &form : forms->second)
        add(form.function);
  });
}

/// Compiles the glue of an entry or, with several pipeline stages, of an entry's part for the stages with `role`.
FailureOr<EntryCode> TargetGlue::compileBody(const EntryInterface &entry, StringRef name, uint32_t role) {
  auto function = lowered.module->lookupSymbol<func::FuncOp>(name);
  if (!function)
    return context.fail("entry \"" + entry.name + "\" was lost on the way");
  FailureOr<mlir::kiln::MemoryPlan> plan = mlir::kiln::MemoryPlan::compute(function);
  if (failed(plan))
    return failure();
  if (lowered.target == context.targets.front() && !function->hasAttr(mlir::kiln::derivesAttrName))
    host.memoryPlan += mlir::kiln::printMemoryPlan(function, *plan);
  const uint64_t states = entry.stateBytes;
  EntryCode code{librarySymbol(model.name, *lowered.target, name), states + plan->arenaBytes(),
                 states + plan->lowerBound()};
  code.function = name.str();
  if (variant.isOnDevice())
    code.stagingBytes = stagingBytes(entry);
  code.steps = listSteps(function, *plan, lowered.forms, context.options.extents);
  code.buffers = listBuffers(function, *plan);
  measureScratch(function, code);
  HostCodeInput input{entry,     model, weights, *plan, code.symbol, kernels, lowered.forms, lowered.target->info(),
                      constants, role};
  if (failed(emitHostCode(function, input, *module)))
    return failure();
  return code;
}

/// Adds the functions to those of other targets.
LogicalResult TargetGlue::link() {
  registerBuiltinDialectTranslation(*module->getContext());
  registerLLVMDialectTranslation(*module->getContext());
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(*module, *host.context, lowered.target->name());
  if (!translated)
    return failure();
  // The linker makes the names of private constants unique. Functions already have unique names.
  if (llvm::Linker::linkModules(*host.module, std::move(translated)))
    return context.fail("the host functions of " + variant.target + " could not be linked");
  return success();
}

LogicalResult TargetGlue::compile() {
  for (auto [number, role] : llvm::enumerate(mlir::kiln::getStageRoles(*lowered.module)))
    for (auto [index, entry] : llvm::enumerate(model.entries)) {
      FailureOr<EntryCode> code = compileBody(entry, mlir::kiln::getStageRoleName(entry.name, role.name), number);
      if (failed(code))
        return failure();
      code->entry = index;
      variant.entries.push_back(std::move(*code));
    }
  if (lowered.module->lookupSymbol(mlir::kiln::derivesFunctionName)) {
    FailureOr<EntryCode> code = compileBody(derivingInterface(), mlir::kiln::derivesFunctionName, 0);
    if (failed(code))
      return failure();
    variant.deriving = std::move(*code);
  }
  variant.constants = constants.bytes();
  if (variant.isOnDevice())
    for (const KernelSummary &kernel : variant.kernels)
      variant.modules.push_back(kernel.symbol + deviceModuleSuffix);
  return link();
}

} // namespace

FailureOr<WeightLayout> layOutWeights(TargetModule &lowered, const ModelInterface &model, Variant &variant) {
  FailureOr<WeightLayout> weights = WeightLayout::compute(*lowered.module, model);
  if (succeeded(weights)) {
    variant.placements = weights->placements();
    variant.derived = weights->derived();
    variant.packedBytes = weights->bytes();
    variant.packedBytesOf = weights->bytesOfRoles();
    describeDerivation(*lowered.module, variant);
  }
  return weights;
}

FailureOr<HostModule> compileGlue(CompileContext &context, LoweredTargets &lowered, const KernelObjects &objects,
                                  MutableArrayRef<Variant> variants) {
  HostModule host;
  for (auto [each, own, variant] : llvm::zip_equal(lowered.modules, objects, variants)) {
    LogicalResult result = context.timed(
        variant.target + " host code", [&, &each = each, &own = own, &variant = variant]() -> LogicalResult {
          FailureOr<WeightLayout> weights = layOutWeights(each, lowered.model, variant);
          if (failed(weights))
            return failure();
          return TargetGlue(context, lowered.model, each, variant, *weights, own, host).compile();
        });
    if (failed(result))
      return failure();
  }
  return host;
}

} // namespace kiln
