// SPDX-License-Identifier: Apache-2.0
//
// Reports how well a tuning file covers a model: the schedule that each kernel would get and why, with the kernel's
// share of the model's work; and the lines of the file that the model does not use.
#pragma once

#include "compiler/driver/Lower.h"
#include "compiler/driver/Schedules.h"
#include "compiler/library/Calls.h"
#include "kiln/graph.h"

namespace kiln {

/// A kernel of one target.
struct CoveredKernel {
  std::string target;
  KernelSummary summary;
  double share = 0; // of the floating-point operations of one call of each entry
};

struct CoverageOptions {
  std::string name; // of the model
  std::vector<std::string> targets;
  GivenExtents extents; // for the call; upper bounds if not given
  TuningOptions tuning;
  LoweringOptions lowering;
};

/// Returns all kernels of all targets, those of a target in the order of its module; their shares add up to 1 for each
/// target. Fails if the model does not compile, which has been reported.
llvm::Expected<std::vector<CoveredKernel>> coverModel(const Graph &graph, const CoverageOptions &options);

/// Returns the share of work, over all targets, in kernels whose schedules were measured for the kernel itself.
double measuredShare(const std::vector<CoveredKernel> &kernels);

/// Formats a table with the sum below it.
std::string printCoverage(const std::vector<CoveredKernel> &kernels);

/// The result of `tune verify`.
struct Verification {
  std::vector<std::string> problems; // errors in the file: unsorted lines, configurations that are illegal now
  std::vector<std::string> warnings; // lines that this model does not use
  TuningDatabase legal;              // the database without the illegal configurations
  TuningDatabase used;               // the same without the lines that this model does not use
};

/// Checks the database against the model's kernels.
llvm::Expected<Verification> verifyTuning(const Graph &graph, const std::string &name, const LoweringOptions &options,
                                          const TuningDatabase &database);

} // namespace kiln
