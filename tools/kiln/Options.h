// SPDX-License-Identifier: Apache-2.0
//
// Options, texts and error handling that several subcommands of a generator share.
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/driver/Lower.h"
#include "compiler/driver/Schedules.h"
#include "compiler/library/Calls.h"
#include "compiler/schedule/Choose.h"

#include <CLI/CLI.hpp>

namespace kiln {

/// Returns the file that `tune` writes and that builds look for: NAME.tuning next to the spec, whose folder is in the
/// environment as KILN_SPEC_FOLDER; else in the current folder.
std::string tuningFileOf(const std::string &name);

/// Adds --tuning and --no-tuning.
void addTuningOptions(CLI::App &app, TuningOptions &options, bool &isUntuned);

/// Completes the options after parsing: if no file was named or refused, uses that of the library's name, else that of
/// the model's name, to which the tuner writes (`options.commandFile`), if the file exists.
void findTuningFile(TuningOptions &options, const std::string &name, bool isUntuned);

/// Adds --machine and --threads.
void addChooseOptions(CLI::App &app, ChooseOptions &options);

/// Accepts the name of a target, for --target.
CLI::Validator knownTarget();

/// Adds --tf32, --batch-invariant, --weights, --activations, --ranks and their related options.
void addLoweringOptions(CLI::App &app, LoweringOptions &options);

/// Adds the options that a library and a packed file of its weights share.
void addModelOptions(CLI::App &app, CompileOptions &options);

/// Returns the selected lowering options as on a command line, with a space before each.
std::string flagsOf(const LoweringOptions &options);

/// For the option --extent: checkExtent returns what is wrong with NAME=VALUE, or an empty string; toExtents returns
/// the values of each name.
std::string checkExtent(const std::string &text);
GivenExtents toExtents(const std::vector<std::string> &texts);

/// Returns a number of bytes as text such as "1.50 MiB".
std::string mib(uint64_t bytes);

/// Prints the error and returns the exit status.
int fail(llvm::Error error);

} // namespace kiln
