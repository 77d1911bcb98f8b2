// SPDX-License-Identifier: Apache-2.0
//
// The tuning of one kernel: its search, the candidate that is best so far, and what goes into the tuning file.
//
// Times in the file are on one scale: a candidate's is the incumbent's times the ratio measured in pairs, and so on
// back to the first measurement of the default. A machine that is slower on another day changes no order.
#pragma once

#include "compiler/schedule/KernelKey.h"
#include "compiler/schedule/TuningFile.h"
#include "compiler/tuner/Search.h"
#include "compiler/tuner/Trials.h"

namespace kiln {

/// How a task stands, for the display and for choosing the next one.
struct TaskState {
  std::string name, strategy;
  std::vector<std::vector<int64_t>> extents;  // of the workloads
  std::vector<double> defaultTimes;           // seconds, one a workload; none yet: empty
  double defaultSeconds = 0, bestSeconds = 0; // summed over the workloads
  double limitFraction = 0;                   // of the best, over all workloads
  Limit limit = Limit::Unknown;
  size_t measured = 0, failed = 0; // candidates, in this run and before
  std::optional<size_t> size;      // of the space
  size_t sinceBest = 0;
  bool isDone = false; // nothing left to measure
  SchedulePoint best;
};

/// One candidate that was tried.
struct TrialReport {
  SchedulePoint point;
  Outcome outcome = Outcome::Measured;
  std::string words;                // of a failure
  std::vector<double> microseconds; // one a workload
  double cost = 0;                  // of the default's time
  bool isBest = false;
  bool isConfirmation = false; // a point measured before, once more beside the default
};

class Task {
public:
  /// The first workload is what the analytic model is for. `report` is called after the database has changed and must
  /// save it before it tells anyone.
  Task(const Target &target, const KernelUse &use, std::vector<std::vector<int64_t>> workloads, const Machine &machine,
       int64_t rotatedBytes, const TrialOptions &options, TuningDatabase &database,
       std::function<void(const TrialReport &)> report);

  /// What came of a step.
  enum class Step { Went, Interrupted, Broken };

  /// Probes the machine. Unless the database has the default, compares its results with the interpreter's and measures
  /// it. Broken: it is wrong, or cannot be measured.
  Step start();
  /// Compiles up to `count` candidates and measures them until `isSpent`.
  Step advance(size_t count, llvm::function_ref<bool()> isSpent);
  /// Measures the best ones beside the default once more, thoroughly, until the best is one of those.
  Step finish();
  /// The best recorded point's time as a part of the default's: as recorded, and measured once more.
  struct Drift {
    SchedulePoint best;
    double recorded = 1, now = 1; // both 1 if the best is the default
    std::string failure;          // in place of a time
  };
  /// Records nothing. Nothing if the default's time is not recorded.
  std::optional<Drift> measureDrift();
  /// Gives the memory of the workloads back; the next step makes it again.
  void rest() { trials.reset(); }

  const TaskState &state() const { return current; }
  const std::string &problem() const { return words; }
  /// Why the default's results were measured without a reference; empty if they had one.
  const std::string &unchecked() const { return lacking; }

private:
  using Times = std::vector<double>; // microseconds, one a workload

  TuningCase caseOf(const SchedulePoint &point, size_t workload) const;
  std::optional<Times> recordedTimes(const SchedulePoint &point) const;
  /// The candidates that the database has for all workloads, with their times, or that failed.
  void forEachRecord(llvm::function_ref<void(const SchedulePoint &, const std::optional<Times> &)> visit) const;
  void readRecords();
  SchedulePoint bestRecorded() const;
  double costOf(const Times &times) const;
  void put(const SchedulePoint &point, const std::vector<Comparison> &comparisons, const Times &base);
  void putFailure(const SchedulePoint &point, const FailedTrial &failure);
  void update();
  KernelTrials &running();
  Step compileOne(const SchedulePoint &point, KernelCode &code);
  Step checkPreset(const KernelCode &code);
  Step measurePreset();
  Step prepareIncumbent();
  Step tryCandidate(const SchedulePoint &point, const KernelCode &code);

  const Target &target;
  KernelUse use;
  std::vector<std::vector<int64_t>> workloads;
  std::vector<Work> work;
  Machine machine;
  int64_t rotatedBytes;
  TrialOptions options;
  TuningDatabase &database;
  std::function<void(const TrialReport &)> report;

  KernelKey key;
  Schedulable schedulable;
  SchedulePoint preset, incumbent;
  Times presetTimes, incumbentTimes;
  KernelCode incumbentCode;
  Search search;
  std::vector<Rates> rates;
  std::unique_ptr<KernelTrials> trials;
  TaskState current;
  std::string words, lacking;
};

} // namespace kiln
