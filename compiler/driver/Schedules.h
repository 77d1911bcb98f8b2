// SPDX-License-Identifier: Apache-2.0
//
// Chooses the schedules of a build: the options that name a tuning file, and messages about the choices.
#pragma once

#include "compiler/library/Interface.h"

namespace kiln {

struct TuningOptions {
  std::string file; // empty: analytic defaults
  ChooseOptions choose;
  bool isRequired = false; // whether to fail unless each kernel was measured
  std::string command;     // the command that measures this model, for messages
  std::string commandEnd;  // what follows the command's options: flags of the C++ compiler
  std::string commandFile; // the file that the command writes by default
};

/// Reads the tuning file, if there is one.
llvm::Expected<ScheduleChooser> loadChooser(const TuningOptions &options);

/// Returns the kernel's strategy, key and schedule. The symbol and the facts that compilation provides are left empty.
KernelSummary chooseSchedule(const ScheduleChooser &chooser, const Target &target, mlir::func::FuncOp kernel);

/// Returns text such as "exact, loss 2.0 %", "transferred from 768x768 1..1024" or "default".
std::string describeChoice(const ScheduleChoice &choice);

/// Quotes a word of a command for the shell.
std::string quoteWord(const std::string &word);

} // namespace kiln
