// SPDX-License-Identifier: Apache-2.0
//
// The subcommand `tune` and its own subcommands: their options and implementation.
#pragma once

#include "compiler/tuner/Coverage.h"
#include "compiler/tuner/Drift.h"
#include "compiler/tuner/Tuner.h"

#include <CLI/CLI.hpp>

namespace kiln {

class TuneCommand {
public:
  /// Adds `tune` to a generator's command line. `name` is the model's name; `advice` has the command that starts the
  /// generator's `tune`.
  TuneCommand(CLI::App &app, const std::string &name, const TuningOptions &advice);

  bool isChosen() const { return tune->parsed(); }
  /// Runs the selected subcommand and returns the exit status.
  int run(Graph (*trace)());

private:
  void addMeasuring(const std::string &name);
  CLI::Option *addRunner(CLI::App &app);
  void addPart();
  void addCoverage(const std::string &name, const TuningOptions &advice);
  void addVerify(const std::string &name);
  int runMeasuring(const Graph &graph);
  int runCoverage(const Graph &graph);
  int runVerify(const Graph &graph);
  int runDrift(const Graph &graph, const TuningDatabase &database);

  CLI::App *tune, *coverage, *verify, *merge;
  std::vector<std::string> extents; // NAME=VALUE

  TuneOptions measuring;
  CLI::Option *measuredFile = nullptr;
  bool isJson = false;

  CoverageOptions covering;
  double leastPercent = 100;

  std::string verifiedName, verifiedFile;
  LoweringOptions verifiedLowering;
  bool fixes = false, prunes = false, measures = false;
  double tolerancePercent = 10;

  std::vector<std::string> mergedFiles;
  std::string mergedFile;
};

/// Runs `merge FILE... -o FILE`, which needs no model. Returns the exit status.
int runMerge(int argc, char **argv);

} // namespace kiln
