// SPDX-License-Identifier: Apache-2.0
//
// What `inspect` says of a library, in words or as a page: the options, and where the parts of an inspection come from.
#pragma once

#include "compiler/emit/Compile.h"
#include "compiler/inspect/Inspection.h"

#include <CLI/CLI.hpp>

namespace kiln {

struct ViewOptions {
  std::string page;                 // the file that gets it; empty: words
  std::string times;                // a table of measurements
  double operations = 0, bytes = 0; // peak rates of a machine, a second; 0: this one's, measured
  unsigned threads = 1;             // that these are measured on
};

/// --html, --times, --flops and --bandwidth.
void addViewOptions(CLI::App &app, ViewOptions &options);

/// Of the targets the first one that this machine runs, else the first one.
std::string chooseShown(const std::vector<std::string> &targets);

/// What the compiler made of the graph: the report's manifest and loop nests, and the graph as it was written.
llvm::Expected<Inspection> inspectModel(const Graph &graph, const CompileReport &report, const CompileOptions &options,
                                        const std::string &target);

/// What compiling left: libNAME.a beside its NAME.manifest.json, or the manifest. Without a target, the one that this
/// machine runs is read.
llvm::Expected<Inspection> readLibrary(const std::string &path, std::string target);

/// The extents that the table of --times was measured at, if there is one: the steps to show are those of such calls.
llvm::Expected<std::map<std::string, int64_t>> extentsOfTimes(const ViewOptions &options);

/// Adds the times and shows it; the exit status.
int showInspection(Inspection inspection, const ViewOptions &options);

} // namespace kiln
