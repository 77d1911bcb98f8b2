// SPDX-License-Identifier: Apache-2.0
//
// How far a tuning file goes for a model: which schedule each kernel would get and why, how much of the model's work
// that is; and which lines of the file are of no use to it.
#pragma once

#include "compiler/emit/Calls.h"
#include "compiler/emit/Lower.h"
#include "compiler/emit/Schedules.h"
#include "kiln/graph.h"

namespace kiln {

/// A kernel of one target.
struct CoveredKernel {
  std::string target;
  KernelSummary summary;
  double share = 0; // of the floating point operations of a call of each entry
};

struct CoverageOptions {
  std::string name; // of the model
  std::vector<std::string> targets;
  GivenExtents extents; // of the call; upper bounds if not given
  TuningOptions tuning;
  LoweringOptions lowering;
};

/// All kernels of all targets, those of a target in the order of its module; their shares add up to 1 for each target.
/// Nothing if the model does not compile, which has been reported.
llvm::Expected<std::vector<CoveredKernel>> coverModel(const Graph &graph, const CoverageOptions &options);

/// The share of work, of all targets together, that measured schedules of the kernels themselves do.
double measuredShare(const std::vector<CoveredKernel> &kernels);

/// A table, and the sum below it.
std::string printCoverage(const std::vector<CoveredKernel> &kernels);

/// What `tune verify` finds.
struct Verification {
  std::vector<std::string> problems; // that make the file wrong: not sorted, points that are illegal today
  std::vector<std::string> warnings; // lines that this model has no use for
  TuningDatabase legal;              // what remains without the illegal points
  TuningDatabase used;               // and without the lines that this model has no use for
};

/// Compares the file, whose text was `text`, with the model's kernels.
llvm::Expected<Verification> verifyTuning(const Graph &graph, const std::string &name, const LoweringOptions &options,
                                          const TuningDatabase &database);

} // namespace kiln
