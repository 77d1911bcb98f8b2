// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/Schedules.h"

#include "compiler/dialect/KilnDialect.h"
#include "llvm/Support/FileSystem.h"
#include <fmt/format.h>

namespace kiln {

std::string quoteWord(const std::string &word) {
  const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos)
    return word;
  std::string text = "'";
  for (char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

llvm::Expected<ScheduleChooser> loadChooser(const TuningOptions &options) {
  if (options.file.empty()) {
    if (options.isRequired)
      return llvm::createStringError(
          fmt::format("--require-tuned: no tuning file; name one with --tuning, or make \"{}\" with: {}",
                      options.commandFile, options.command + options.commandEnd));
    if (!options.choose.machine.empty())
      return llvm::createStringError("--machine: no tuning file; expected one that names the machine, with --tuning");
    return ScheduleChooser();
  }
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(options.file);
  if (!database) {
    std::string problem = llvm::toString(database.takeError());
    if (!llvm::sys::fs::exists(options.file))
      problem +=
          fmt::format("; \"{} --tuning {}{}\" makes it", options.command, quoteWord(options.file), options.commandEnd);
    return llvm::createStringError(problem);
  }
  llvm::Expected<ScheduleChooser> chooser = ScheduleChooser::create(*database, options.choose);
  if (!chooser)
    return llvm::createStringError(options.file + ": " + llvm::toString(chooser.takeError()));
  return chooser;
}

KernelSummary chooseSchedule(const ScheduleChooser &chooser, const Target &target, mlir::func::FuncOp kernel) {
  KernelSummary summary;
  summary.function = kernel.getName().str();
  if (auto scopes = kernel->getAttrOfType<mlir::ArrayAttr>(mlir::kiln::scopesAttrName))
    for (llvm::StringRef scope : scopes.getAsValueRange<mlir::StringAttr>()) {
      std::string &layer = summary.layers.emplace_back(scope.str());
      for (size_t at = 0; (at = layer.find("{}", at)) != std::string::npos;)
        layer.replace(at, 2, "*");
    }
  summary.key = keyOf(kernel);
  Schedulable schedulable = target.compilerOf(kernel).describe(kernel);
  summary.strategy = schedulable.strategy;
  summary.choice = chooser.choose(summary.key, schedulable, target.measuredAs());
  summary.schedule = summary.choice.config;
  return summary;
}

std::string describeChoice(const ScheduleChoice &choice) {
  switch (choice.provenance) {
  case Provenance::Exact:
    return *choice.loss < 0.0005 ? "exact" : fmt::format("exact, loss {:.1f} %", *choice.loss * 100);
  case Provenance::Transferred:
    return "transferred from " + choice.donor;
  case Provenance::Default:
    break;
  }
  return "default";
}

} // namespace kiln
