// SPDX-License-Identifier: Apache-2.0
//
// The tuning of one kernel: its search, the best candidate so far (the incumbent), and its records in the tuning file.
//
// Times in the file are on one scale: a candidate's time is the incumbent's times the ratio measured in pairs, and so
// on back to the first measurement of the default. A machine that is slower on another day does not change the order.
#pragma once

#include "compiler/kernel/KernelKey.h"
#include "compiler/schedule/TuningFile.h"
#include "compiler/tuner/Measurements.h"
#include "compiler/tuner/Search.h"

namespace kiln {

/// The state of a task, for the display and for choosing the next one.
struct TaskState {
  std::string name, strategy;
  std::vector<std::vector<int64_t>> extents;  // of the workloads
  std::vector<double> defaultTimes;           // seconds, one per workload; empty if not measured yet
  double defaultSeconds = 0, bestSeconds = 0; // summed over the workloads
  double limitFraction = 0;                   // of the best, over all workloads
  Limit limit = Limit::Unknown;
  size_t measured = 0, failed = 0; // candidates, including earlier runs
  std::optional<size_t> size;      // of the space
  size_t sinceBest = 0;
  bool isDone = false; // nothing left to measure
  ScheduleConfig best;
};

/// One measured candidate.
struct MeasurementReport {
  ScheduleConfig config;
  Outcome outcome = Outcome::Measured;
  std::string words;                // of a failure
  std::vector<double> microseconds; // one per workload
  double cost = 0;                  // relative to the default's time
  bool isBest = false;
  bool isConfirmation = false; // an earlier configuration, measured again against the default
};

class Task {
public:
  /// The analytic model is built for the first workload. `report` is called after the database has changed and must
  /// save it before it displays anything.
  Task(const Target &target, const KernelUse &use, std::vector<std::vector<int64_t>> workloads, const Machine &machine,
       int64_t rotatedBytes, const MeasurementOptions &options, TuningDatabase &database,
       std::function<void(const MeasurementReport &)> report);

  /// The outcome of a step.
  enum class Step { Went, Interrupted, Broken };

  /// Probes the machine. Unless the database has the default, compares its results with the interpreter's and measures
  /// it. Returns Broken if the results are wrong or cannot be measured.
  Step start();
  /// Compiles up to `count` candidates and measures them until `isSpent`.
  Step advance(size_t count, llvm::function_ref<bool()> isSpent);
  /// Measures the best candidates against the default again, with all pairs, until the best is one of those.
  Step finish();
  /// The best recorded configuration's time relative to the default's: as recorded, and measured again.
  struct Drift {
    ScheduleConfig best;
    double recorded = 1, now = 1; // both 1 if the best is the default
    std::string failure;          // instead of a time
  };
  /// Records nothing. Returns nullopt if the default's time is not recorded.
  std::optional<Drift> measureDrift();
  /// Frees the memory of the workloads; the next step allocates it again.
  void rest() { measurements.reset(); }

  const TaskState &state() const { return current; }
  const std::string &problem() const { return words; }
  /// Returns why the default was measured without a reference; empty if there was one.
  const std::string &unchecked() const { return lacking; }

private:
  using Times = std::vector<double>; // microseconds, one per workload

  TuningCase caseOf(const ScheduleConfig &config, size_t workload) const;
  std::optional<Times> recordedTimes(const ScheduleConfig &config) const;
  /// Visits the candidates that the database has for all workloads, with their times, and those that failed.
  void forEachRecord(llvm::function_ref<void(const ScheduleConfig &, const std::optional<Times> &)> visit) const;
  void readRecords();
  ScheduleConfig bestRecorded() const;
  double costOf(const Times &times) const;
  void put(const ScheduleConfig &config, const std::vector<Comparison> &comparisons, const Times &base);
  void putFailure(const ScheduleConfig &config, const FailedMeasurement &failure);
  void update();
  KernelMeasurements &running();
  Step compileOne(const ScheduleConfig &config, KernelCode &code);
  Step checkDefault(const KernelCode &code);
  Step measureDefault();
  Step prepareIncumbent();
  Step tryCandidate(const ScheduleConfig &config, const KernelCode &code);

  const Target &target;
  KernelUse use;
  std::vector<std::vector<int64_t>> workloads;
  std::vector<Work> work;
  Machine machine;
  int64_t rotatedBytes;
  MeasurementOptions options;
  TuningDatabase &database;
  std::function<void(const MeasurementReport &)> report;

  KernelKey key;
  Schedulable schedulable;
  ScheduleConfig defaultConfig, incumbent;
  Times timesOfDefault, incumbentTimes;
  KernelCode incumbentCode;
  Search search;
  std::vector<Rates> rates;
  std::unique_ptr<KernelMeasurements> measurements;
  TaskState current;
  std::string words, lacking;
};

} // namespace kiln
