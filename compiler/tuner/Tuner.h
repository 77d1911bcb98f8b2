// SPDX-License-Identifier: Apache-2.0
//
// `tune`: measures schedules of the model's kernels on this machine and writes the results to a tuning file. It ends
// when the budget is spent, no gain is expected, or on Ctrl-C; a run on the same file resumes the last one.
#pragma once

#include "compiler/driver/Lower.h"
#include "compiler/library/Calls.h"
#include "compiler/tuner/Display.h"
#include "compiler/tuner/Part.h"
#include "kiln/graph.h"

namespace kiln {

struct TuneOptions {
  std::string name;                 // of the model
  std::vector<std::string> targets; // those that do not run here are skipped
  RunnerOptions runner;             // for another machine
  std::string file;                 // the tuning file
  double budget = 600;              // seconds, for all targets together
  unsigned threads = 0;             // 0: as many as there are CPUs
  GivenExtents extents;             // with which the model is called
  std::string kernels;              // a regular expression; empty: all
  Part part;                        // the part of these kernels that this run measures
  DisplayForm form = DisplayForm::Lines;
  LoweringOptions lowering;
};

/// Returns the exit status: 0, 1 if nothing could be tuned (reported on `errors`), or 130 if interrupted.
int tuneModel(const Graph &graph, const TuneOptions &options, llvm::raw_ostream &errors);

} // namespace kiln
