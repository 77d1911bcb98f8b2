// SPDX-License-Identifier: Apache-2.0
//
// What a tuner's user sees: on a terminal a block that is rewritten, elsewhere a line for each thing that happened, or
// objects for machines.
#pragma once

#include "compiler/tuner/Task.h"

namespace kiln {

/// The whole run, as it stands.
struct TuneState {
  std::string target;
  unsigned threads = 1;
  double seconds = 0, budget = 0;
  std::vector<const TaskState *> tasks;
  std::vector<double> shares; // of the model's time, one a task
  std::vector<double> gains;  // that may be left, as a share of the model's time
  size_t active = 0;          // the task that runs
};

enum class DisplayForm { Terminal, Lines, Json };

class TuneDisplay {
public:
  virtual ~TuneDisplay() = default;
  /// Something that the user should know, such as a target that is left out.
  virtual void note(const std::string &text) = 0;
  /// A candidate of the active task, after it was saved.
  virtual void trial(const TuneState &state, const TrialReport &report) = 0;
  /// Time went by, or another task has its turn.
  virtual void update(const TuneState &state) = 0;
  /// The end of a target: what was gained.
  virtual void summary(const TuneState &state, const std::string &file, bool isInterrupted) = 0;
};

std::unique_ptr<TuneDisplay> makeDisplay(DisplayForm form);

} // namespace kiln
