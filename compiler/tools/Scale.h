// SPDX-License-Identifier: Apache-2.0
//
// `scale`: what entries take on many machines, of a spec and of an archive.
#pragma once

#include "compiler/scale/Library.h"

#include <CLI/CLI.hpp>

namespace kiln {

struct ClusterOptions {
  std::string machine; // a file
  Placement placement;
};

/// --machine, --stages, --microbatches, --interleave, --overlap and --type.
void addClusterOptions(CLI::App &app, ClusterOptions &options);

/// Predicts and prints; the exit status.
int showCosts(const Inspection &inspection, const ClusterOptions &options);

} // namespace kiln
