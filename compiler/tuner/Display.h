// SPDX-License-Identifier: Apache-2.0
//
// The tuner's output: on a terminal a block that is redrawn, otherwise one line per event, or JSON objects.
#pragma once

#include "compiler/tuner/Task.h"

namespace kiln {

/// The state of the whole run.
struct TuneState {
  std::string target;
  unsigned threads = 1;
  double seconds = 0, budget = 0;
  std::vector<const TaskState *> tasks;
  std::vector<double> shares; // of the model's time, one per task
  std::vector<double> gains;  // expected remaining gains, as shares of the model's time
  size_t active = 0;          // the current task
};

enum class DisplayForm { Terminal, Lines, Json };

class TuneDisplay {
public:
  virtual ~TuneDisplay() = default;
  /// Reports something that the user should know, such as a target that is skipped.
  virtual void note(const std::string &text) = 0;
  /// Reports a candidate of the active task, after it was saved.
  virtual void measurement(const TuneState &state, const MeasurementReport &report) = 0;
  /// Called as time passes, or when another task becomes active.
  virtual void update(const TuneState &state) = 0;
  /// Reports the gains at the end of a target.
  virtual void summary(const TuneState &state, const std::string &file, bool isInterrupted) = 0;
};

std::unique_ptr<TuneDisplay> makeDisplay(DisplayForm form);

} // namespace kiln
