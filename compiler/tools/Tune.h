// SPDX-License-Identifier: Apache-2.0
//
// `tune` and its subcommands: the options, and what runs.
#pragma once

#include "compiler/tuner/Coverage.h"
#include "compiler/tuner/Drift.h"
#include "compiler/tuner/Tuner.h"

#include <CLI/CLI.hpp>

namespace kiln {

class TuneCommand {
public:
  /// Adds `tune` to a generator's command line. `name` is that of the model, `command` what starts the generator's
  /// `tune`.
  TuneCommand(CLI::App &app, const std::string &name, const std::string &command);

  bool isChosen() const { return tune->parsed(); }
  /// Runs what was chosen; the exit status.
  int run(Graph (*trace)());

private:
  void addMeasuring(const std::string &name);
  CLI::Option *addRunner(CLI::App &app);
  void addPart();
  void addCoverage(const std::string &name, const std::string &command);
  void addVerify(const std::string &name);
  void addRekey(const std::string &name);
  int runMeasuring(const Graph &graph);
  int runCoverage(const Graph &graph);
  int runVerify(const Graph &graph);
  int runRekey(const Graph &graph);
  int runDrift(const Graph &graph, const TuningDatabase &database);

  CLI::App *tune, *coverage, *verify, *rekey, *merge;
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

  std::string rekeyedName, rekeyedFile;
  LoweringOptions rekeyedLowering;

  std::vector<std::string> mergedFiles;
  std::string mergedFile;
};

/// Prints the error; the exit status.
int fail(llvm::Error error);

/// --machine and --threads.
void addChooseOptions(CLI::App &app, ChooseOptions &options);

/// --norm-moments, --tf32, --ordered, --weights.
void addLoweringOptions(CLI::App &app, LoweringOptions &options);

/// Of the option --extent: what is wrong with NAME=VALUE, or nothing; the values of each name.
std::string checkExtent(const std::string &text);
GivenExtents toExtents(const std::vector<std::string> &texts);

/// What was chosen of them, as on a command line, with a space before each.
std::string flagsOf(const LoweringOptions &options);

/// `merge FILE... -o FILE` by itself: it needs no model. The exit status.
int runMerge(int argc, char **argv);

} // namespace kiln
