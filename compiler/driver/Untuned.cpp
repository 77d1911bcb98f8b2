// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/Untuned.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/library/Calls.h"
#include "targets/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

using namespace mlir;

namespace {

/// Builds the commands that measure some kernels of a variant.
class Commands {
public:
  Commands(const ChosenVariant &variant, const TuningOptions &options)
      : variant(variant), options(options), symbols(mlir::kiln::getSymbols(variant.module)) {}

  std::vector<std::string> measure(std::set<std::string> kernels) {
    std::vector<std::string> commands;
    auto take = [&](const GivenExtents &extents) {
      std::set<std::string> called = calledAt(extents, kernels);
      if (called.empty())
        return;
      commands.push_back(command(extents, called));
      for (const std::string &name : called)
        kernels.erase(name);
    };
    take(measuredExtents());
    for (const GivenExtents &extents : boundaries())
      take(extents);
    if (!kernels.empty()) // no call of these kernels was found; the tuner uses their own bounds
      commands.push_back(command({}, kernels));
    return commands;
  }

private:
  /// Returns the extents at which the file has measurements of this model, where a kernel's extent is directly an
  /// extent of the model; else the upper bounds.
  GivenExtents measuredExtents() {
    std::vector<std::set<int64_t, std::greater<>>> values(symbols.size());
    llvm::StringMap<const std::set<std::vector<int64_t>> *> measured;
    for (const KernelSummary &kernel : variant.variant.kernels)
      measured[kernel.function] = &kernel.choice.measuredAt;
    variant.module->walk([&](mlir::kiln::CallOp call) {
      auto learn = [&](StringRef function) {
        auto found = measured.find(function);
        if (found == measured.end())
          return;
        for (const std::vector<int64_t> &extents : *found->second)
          for (auto [operand, value] : llvm::zip(call.getExtents(), extents))
            if (auto argument = dyn_cast<BlockArgument>(operand)) {
              mlir::kiln::SymbolAttr symbol = symbols[argument.getArgNumber()];
              if (value >= symbol.getMin() && value <= symbol.getMax())
                values[argument.getArgNumber()].insert(value);
            }
      };
      learn(call.getCallee());
      if (auto forms = variant.forms.find(call.getCallee()); forms != variant.forms.end())
        for (const KernelVariant &form : forms->second)
          learn(form.function);
    });
    GivenExtents extents;
    for (auto [symbol, known] : llvm::zip(symbols, values)) {
      std::vector<int64_t> &list = extents[symbol.getName().str()];
      list.assign(known.begin(), known.end());
      if (list.empty())
        list.push_back(symbol.getMax());
    }
    return extents;
  }

  /// Returns all combinations of the bounds of extents and of shape-specialised variants.
  std::vector<GivenExtents> boundaries() {
    std::vector<GivenExtents> all{{}};
    for (mlir::kiln::SymbolAttr symbol : symbols) {
      std::set<int64_t, std::greater<>> values{symbol.getMin(), symbol.getMax()};
      for (const auto &entry : variant.forms)
        for (const KernelVariant &form : entry.second)
          values.insert(std::clamp<int64_t>(form.bound, symbol.getMin(), symbol.getMax()));
      std::vector<GivenExtents> longer;
      for (const GivenExtents &extents : all)
        for (int64_t value : values) {
          longer.push_back(extents);
          longer.back()[symbol.getName().str()] = {value};
        }
      all = std::move(longer);
    }
    return all;
  }

  std::set<std::string> calledAt(const GivenExtents &extents, const std::set<std::string> &kernels) {
    std::set<std::string> called;
    for (KernelUse &use :
         collectKernels(variant.module, variant.forms, llvm::cantFail(makeScenarios(variant.module, extents))))
      if (kernels.count(use.kernel.getName().str()) &&
          llvm::any_of(use.scenarios, [](const auto &workloads) { return !workloads.empty(); }))
        called.insert(use.kernel.getName().str());
    return called;
  }

  std::string command(const GivenExtents &extents, const std::set<std::string> &kernels) {
    std::string text =
        fmt::format("{} --tuning {} --target {}", options.command, quoteWord(options.file), variant.variant.target);
    if (options.choose.threads > 0)
      text += fmt::format(" --threads {}", options.choose.threads);
    for (const auto &[name, values] : extents)
      for (int64_t value : values)
        text += fmt::format(" --extent {}={}", name, value);
    if (kernels.size() < variant.variant.kernels.size())
      text += " --kernel " + quoteWord(fmt::format("^({})$", fmt::join(kernels, "|")));
    return text + options.commandEnd;
  }

  const ChosenVariant &variant;
  const TuningOptions &options;
  SmallVector<mlir::kiln::SymbolAttr> symbols;
};

} // namespace

std::string findUntuned(ArrayRef<ChosenVariant> variants, const TuningOptions &options) {
  if (!options.isRequired)
    return "";
  std::vector<std::string> lines, commands;
  for (const ChosenVariant &chosen : variants) {
    std::set<std::string> missing;
    for (const KernelSummary &kernel : chosen.variant.kernels) {
      if (kernel.choice.provenance == Provenance::Exact)
        continue;
      missing.insert(kernel.function);
      lines.push_back(fmt::format("{} {}: {} {} {} {}, {}", chosen.variant.target, kernel.function, kernel.strategy,
                                  kernel.key.structure, toString(kernel.key.shape), toString(kernel.key.bounds),
                                  describeChoice(kernel.choice)));
    }
    if (!missing.empty())
      llvm::append_range(commands, Commands(chosen, options).measure(std::move(missing)));
  }
  if (lines.empty())
    return "";
  return fmt::format(
      "tuning file \"{}\": kernels without a measured schedule; expected one for every kernel, got none for {}:\n  {}\n"
      "measure {} with:\n  {}",
      options.file, lines.size(), fmt::join(lines, "\n  "), lines.size() == 1 ? "it" : "them",
      fmt::join(commands, "\n  "));
}

std::string measuringCommand(const std::vector<std::string> &targets, const TuningOptions &options) {
  std::string text = options.command;
  if (!options.file.empty() && options.file != options.commandFile)
    text += " --tuning " + quoteWord(options.file);
  if (targets != defaultTargetNames())
    text += fmt::format(" --target {}", fmt::join(targets, ","));
  if (options.choose.threads > 0)
    text += fmt::format(" --threads {}", options.choose.threads);
  return text + options.commandEnd;
}

static size_t countMeasured(const Variant &variant) {
  return llvm::count_if(variant.kernels,
                        [](const KernelSummary &kernel) { return kernel.choice.provenance == Provenance::Exact; });
}

bool isTuned(ArrayRef<Variant> variants) {
  return llvm::all_of(variants,
                      [](const Variant &variant) { return countMeasured(variant) == variant.kernels.size(); });
}

std::string describeTuning(ArrayRef<Variant> variants, const TuningOptions &options) {
  size_t all = 0, measured = 0;
  std::vector<std::string> counts, lacking;
  for (const Variant &variant : variants) {
    const size_t exact = countMeasured(variant);
    all += variant.kernels.size();
    measured += exact;
    counts.push_back(fmt::format("{} {} of {}", variant.target, exact, variant.kernels.size()));
    if (exact < variant.kernels.size())
      lacking.push_back(variant.target);
  }
  const std::string source = options.file.empty() ? "" : fmt::format(" in \"{}\"", options.file);
  if (lacking.empty())
    return fmt::format("schedules: all {} kernels are measured{}", all, source);
  const std::string command = measuringCommand(lacking, options);
  if (measured == 0)
    return fmt::format("schedules: none of {} kernels is measured{}; measure them with: {}", all, source, command);
  return fmt::format("schedules: {} of {} kernels are measured{} ({}); measure the others with: {}", measured, all,
                     source, fmt::join(counts, ", "), command);
}

} // namespace kiln
