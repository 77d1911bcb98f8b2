// SPDX-License-Identifier: Apache-2.0
//
// The subcommand `scale`, which predicts the time and memory of entries on many machines, for a spec or an archive.
#pragma once

#include "tools/scale/Library.h"

#include <CLI/CLI.hpp>

namespace kiln {

struct ClusterOptions {
  std::string machine; // a file that describes the machine
  Placement placement;
};

/// Adds --machine, --stages, --microbatches, --interleave, --overlap and --type.
void addClusterOptions(CLI::App &app, ClusterOptions &options);

/// Prints the prediction and returns the exit status.
int showCosts(const Inspection &inspection, const ClusterOptions &options);

} // namespace kiln
