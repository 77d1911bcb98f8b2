// SPDX-License-Identifier: Apache-2.0
//
// The subcommands `pack` and `check`, which write and compare the weights of a checkpoint, and the options that
// describe one.
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/package/PackWeights.h"

#include <CLI/CLI.hpp>

namespace kiln {

/// Returns an error message if options do not go together, else an empty string.
std::string checkCheckpoint(const Checkpoint &checkpoint);

/// Adds the options that describe a checkpoint whose path is a separate option.
void addCheckpointOptions(CLI::App &app, Checkpoint &checkpoint);

/// Add the subcommands.
CLI::App *addPack(CLI::App &app, CompileOptions &options, Checkpoint &checkpoint);
CLI::App *addCheck(CLI::App &app, CompileOptions &options, Checkpoint &checkpoint);

/// Prints one line per difference. Returns the exit status.
int runCheck(const Graph &graph, CompileOptions options, const Checkpoint &checkpoint);

/// Writes one file per target. Returns the exit status.
int runPack(const Graph &graph, CompileOptions options, const Checkpoint &checkpoint);

} // namespace kiln
