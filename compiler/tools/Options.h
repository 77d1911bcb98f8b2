// SPDX-License-Identifier: Apache-2.0
//
// What several subcommands of a generator share: options, and how they fail.
#pragma once

#include "compiler/emit/Calls.h"
#include "compiler/emit/Lower.h"
#include "compiler/schedule/Choose.h"

#include <CLI/CLI.hpp>

namespace kiln {

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
