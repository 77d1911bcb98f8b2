// SPDX-License-Identifier: Apache-2.0
//
// The subcommand `inspect`, which describes a library as text or as a page: its options, and the sources of an
// inspection.
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/inspect/Inspection.h"

#include <CLI/CLI.hpp>

namespace kiln {

struct ViewOptions {
  std::string page;                 // the output file of the page; empty: text
  std::string times;                // a file with a table of measurements
  double operations = 0, bytes = 0; // peak rates of a machine, per second; 0: measured on this machine
  unsigned threads = 1;             // number of threads for that measurement
};

/// Adds --html, --times, --flops and --bandwidth.
void addViewOptions(CLI::App &app, ViewOptions &options);

/// Returns the first of the targets that this machine runs, else the first one.
std::string chooseShown(const std::vector<std::string> &targets);

/// Returns the inspection of a compiled graph: the report's manifest and loop nests, and the graph as it was written.
llvm::Expected<Inspection> inspectModel(const Graph &graph, const CompileReport &report, const CompileOptions &options,
                                        const std::string &target);

/// Reads a compiled library: libNAME.a next to its NAME.manifest.json, or the manifest. If `target` is empty, reads the
/// target that this machine runs.
llvm::Expected<Inspection> readLibrary(const std::string &path, std::string target);

/// Returns the extents at which the table of --times was measured, if there is one: the steps to show are those of such
/// calls.
llvm::Expected<std::map<std::string, int64_t>> extentsOfTimes(const ViewOptions &options);

/// Adds the times and shows the inspection. Returns the exit status.
int showInspection(Inspection inspection, const ViewOptions &options);

} // namespace kiln
