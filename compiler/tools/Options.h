// SPDX-License-Identifier: Apache-2.0
//
// What several subcommands of a generator share: options, and how they fail.
#pragma once

#include "compiler/emit/Calls.h"
#include "compiler/emit/Lower.h"
#include "compiler/emit/Schedules.h"
#include "compiler/schedule/Choose.h"

#include <CLI/CLI.hpp>

namespace kiln {

/// The file that `tune` writes to and that builds look for: NAME.tuning next to the spec, whose folder is in the
/// environment as KILN_SPEC_FOLDER; else in the current folder.
std::string tuningFileOf(const std::string &name);

/// --tuning and --no-tuning.
void addTuningOptions(CLI::App &app, TuningOptions &options, bool &isUntuned);

/// After parsing: if no file was named, and none refused, that of the library's name, else that of the model's, where
/// the tuner writes to (`options.commandFile`), as far as it is there.
void findTuningFile(TuningOptions &options, const std::string &name, bool isUntuned);

/// --machine and --threads.
void addChooseOptions(CLI::App &app, ChooseOptions &options);

/// --norm-moments, --tf32, --ordered, --weights, --activations, --ranks and all that goes with it.
void addLoweringOptions(CLI::App &app, LoweringOptions &options);

/// What was chosen of them, as on a command line, with a space before each.
std::string flagsOf(const LoweringOptions &options);

/// Of the option --extent: what is wrong with NAME=VALUE, or nothing; the values of each name.
std::string checkExtent(const std::string &text);
GivenExtents toExtents(const std::vector<std::string> &texts);

/// Prints the error; the exit status.
int fail(llvm::Error error);

} // namespace kiln
