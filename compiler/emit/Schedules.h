// SPDX-License-Identifier: Apache-2.0
//
// How a build gets its schedules: the options that name a tuning file, and the words about what was chosen.
#pragma once

#include "compiler/emit/Interface.h"

namespace kiln {

struct TuningOptions {
  std::string file; // empty: analytic defaults
  ChooseOptions choose;
  bool isRequired = false; // fail unless each kernel was measured
  std::string command;     // that measures this model, for advice
  std::string commandEnd;  // what stands behind all of its options: flags of the C++ compiler
  std::string commandFile; // where it writes to unless it is told otherwise
};

/// Reads the file, if there is one.
llvm::Expected<ScheduleChooser> loadChooser(const TuningOptions &options);

/// The kernel's strategy, key and schedule; the symbol and what compiling tells are left empty.
KernelSummary chooseSchedule(const ScheduleChooser &chooser, const Target &target, mlir::func::FuncOp kernel);

/// "exact, loss 2.0 %", "transferred from 768x768 1..1024, predicted loss 3.1 %", "default".
std::string describeChoice(const ScheduleChoice &choice);

/// A word of a command as the shell wants it.
std::string quoteWord(const std::string &word);

} // namespace kiln
