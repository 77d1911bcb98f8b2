// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/KernelStages.h"

#include "compiler/driver/Untuned.h"

using namespace mlir;

namespace kiln {

/// Returns the summary of a kernel with its schedule.
static KernelSummary summarize(const CompileContext &context, const ScheduleChooser &chooser, const Target &target,
                               func::FuncOp function) {
  const CompileOptions &options = context.options;
  KernelSummary kernel = chooseSchedule(chooser, target, function);
  if (options.configOf)
    kernel.schedule = options.configOf(target.compilerOf(function).describe(function));
  kernel.symbol = librarySymbol(context.described.name, target, function.getName());
  if (options.showsCosts)
    kernel.cost = target.compilerOf(function).printCost(function, kernel.schedule);
  return kernel;
}

FailureOr<std::vector<Variant>> chooseSchedules(CompileContext &context, LoweredTargets &lowered) {
  FailureOr<ScheduleChooser> chooser = context.require(loadChooser(context.options.tuning));
  if (failed(chooser))
    return failure();
  std::vector<Variant> variants(lowered.modules.size());
  std::vector<ChosenVariant> chosen;
  for (auto [each, variant] : llvm::zip_equal(lowered.modules, variants)) {
    const TargetInfo &info = each.target->info();
    variant.target = info.name;
    variant.features = info.features;
    variant.memorySpace = info.memorySpace;
    variant.backend = info.backend;
    for (func::FuncOp function : each.kernels())
      variant.kernels.push_back(summarize(context, *chooser, *each.target, function));
    chosen.push_back({variant, *each.module, each.forms});
  }
  if (std::string untuned = findUntuned(chosen, context.options.tuning); !untuned.empty())
    return context.fail(untuned);
  return variants;
}

/// Returns the kernels of all targets with their schedules.
static std::vector<KernelRequest> requestKernels(LoweredTargets &lowered, ArrayRef<Variant> variants) {
  std::vector<KernelRequest> requests;
  for (auto [each, variant] : llvm::zip_equal(lowered.modules, variants))
    for (auto [function, kernel] : llvm::zip_equal(each.kernels(), variant.kernels))
      requests.push_back({function, each.target, kernel.symbol, kernel.schedule});
  return requests;
}

FailureOr<std::string> printAllKernels(CompileContext &context, LoweredTargets &lowered, ArrayRef<Variant> variants,
                                       KernelText form) {
  auto texts = printKernels(requestKernels(lowered, variants), form, context.options.kernels, context.errors);
  if (failed(texts))
    return failure();
  std::string all;
  for (const std::string &text : *texts)
    all += text + "\n";
  return all;
}

LogicalResult describeLoops(CompileContext &context, LoweredTargets &lowered, MutableArrayRef<Variant> variants) {
  const std::string &shown = context.options.loopsOf;
  std::vector<KernelRequest> requests = requestKernels(lowered, variants);
  llvm::erase_if(requests, [&](const KernelRequest &kernel) { return kernel.target->name() != shown; });
  auto texts = printKernels(requests, KernelText::Loops, context.options.kernels, context.errors);
  if (failed(texts))
    return failure();
  for (Variant &variant : variants)
    if (variant.target == shown)
      for (auto [kernel, text] : llvm::zip_equal(variant.kernels, *texts))
        kernel.loops = std::move(text);
  return success();
}

static LogicalResult dumpKernels(CompileContext &context, ArrayRef<KernelRequest> requests) {
  for (auto [form, suffix] : {std::pair(KernelText::Stmt, ".stmt"), std::pair(KernelText::Assembly, ".s")}) {
    auto texts = printKernels(requests, form, context.options.kernels, context.errors);
    if (failed(texts))
      return failure();
    for (auto [request, text] : llvm::zip_equal(requests, *texts))
      if (failed(context.write(context.options.dumpDirectory + "/" + request.symbol + suffix, text)))
        return failure();
  }
  return success();
}

FailureOr<KernelObjects> compileObjects(CompileContext &context, LoweredTargets &lowered,
                                        MutableArrayRef<Variant> variants) {
  ObjectCache cache(context.options.cacheFolder, context.options.maxCacheBytes);
  KernelOptions options = context.options.kernels;
  options.cache = &cache;
  std::vector<KernelRequest> requests = requestKernels(lowered, variants);
  auto compiled = compileKernels(requests, options, context.errors);
  if (failed(compiled))
    return failure();
  if (!context.options.dumpDirectory.empty() && failed(dumpKernels(context, requests)))
    return failure();
  KernelObjects objects;
  auto next = compiled->begin();
  for (Variant &variant : variants) {
    std::vector<KernelObject> &own = objects.emplace_back();
    for (KernelSummary &summary : variant.kernels) {
      KernelObject &kernel = own.emplace_back(std::move(*next++));
      FailureOr<uint64_t> bytes = context.require(textBytes(kernel.object));
      if (failed(bytes))
        return failure();
      summary.textBytes = *bytes;
      summary.isFallback = kernel.isFallback;
    }
  }
  return objects;
}

std::vector<ObjectFile> kernelMembers(ArrayRef<Variant> variants, KernelObjects objects) {
  std::vector<ObjectFile> members;
  for (auto [variant, own] : llvm::zip_equal(variants, objects))
    for (auto [summary, kernel] : llvm::zip_equal(variant.kernels, own))
      members.push_back({summary.symbol + ".o", std::move(kernel.object)});
  return members;
}

} // namespace kiln
