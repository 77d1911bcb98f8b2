// SPDX-License-Identifier: Apache-2.0
//
// The subcommand `bench`, which times entries and their kernels on this machine.
#pragma once

#include "compiler/driver/Compile.h"

#include <CLI/CLI.hpp>

namespace kiln {

class BenchCommand {
public:
  /// Adds `bench` to a generator's command line. `options` has the name of the model.
  BenchCommand(CLI::App &app, const CompileOptions &options);

  bool isChosen() const { return bench->parsed(); }
  /// Compiles the model, links it into this process and times it. Returns the exit status.
  int run(const Graph &graph);

private:
  CLI::App *bench;
  CompileOptions options;
  bool isUntuned = false;
  unsigned threads = 0; // 0: one for small models, else all CPUs
  double seconds = 1;
  std::vector<std::string> extents, entries; // extents: NAME=VALUE; entries: all if empty
  std::string jsonFile, traceFile;
};

} // namespace kiln
