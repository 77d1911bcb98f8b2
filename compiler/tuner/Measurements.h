// SPDX-License-Identifier: Apache-2.0
//
// Compiles and measures candidates of one kernel in child processes, so that the tuner survives any failure of a
// candidate and can record it.
#pragma once

#include "compiler/jobs/Jobs.h"
#include "compiler/library/Calls.h"
#include "compiler/schedule/TuningFile.h"
#include "compiler/tuner/Compare.h"
#include "compiler/tuner/Probes.h"
#include "targets/target.h"

#include <variant>

namespace kiln {

/// The failure of a candidate without a time.
struct FailedMeasurement {
  Outcome outcome; // not Measured
  std::string words;
};

struct MeasurementLimits {
  double compileSeconds = 60, measureSeconds = 20;
  uint64_t compileBytes = uint64_t(4) << 30;
};

struct MeasurementOptions {
  CompareOptions compare;
  MeasurementLimits limits;
  std::vector<int> cpus; // to which measurements are pinned
  RunnerOptions runner;  // for another machine
  unsigned compileWorkers = 1;
  std::function<bool()> goesOn; // polled several times a second; false kills running jobs
};

/// Returns options for this number of threads, here or on the machine of the script. Local threads are pinned, if
/// possible to CPUs other than the first: that one serves most interrupts.
MeasurementOptions makeMeasurementOptions(unsigned threads, const RunnerOptions &runner);

/// Runs jobs and polls `goesOn`; nullopt if it returned false.
std::optional<std::vector<JobResult>> runWhile(llvm::ArrayRef<Job> jobs, unsigned workers, JobLimits limits,
                                               const std::function<bool()> &goesOn);

class KernelMeasurements {
public:
  KernelMeasurements(const Target &target, const KernelUse &use, const std::vector<std::vector<int64_t>> &workloads,
                     int64_t rotatedBytes, const MeasurementOptions &options);

  template <typename T> using Result = std::variant<FailedMeasurement, T>;

  /// Compiles the configurations, several at a time; nullopt if interrupted.
  std::optional<std::vector<Result<KernelCode>>> compile(llvm::ArrayRef<ScheduleConfig> configs);
  /// Compares a schedule's results with the interpreter's (Reference.h); nullopt if interrupted. Returns why there was
  /// no reference, empty if there was one; the text for a wrong schedule completes "the schedule".
  std::optional<Result<std::string>> check(const KernelCode &code);
  /// Measures a candidate against the base; nullopt if interrupted. `isFinal`: with as many pairs as time allows.
  std::optional<Result<std::vector<Comparison>>> measure(const KernelCode &base, const KernelCode &candidate,
                                                         bool isFinal = false);

  /// Sets the timeout of a measurement, in seconds.
  void limitMeasuring(double seconds) { options.limits.measureSeconds = seconds; }

  /// Measures the machine's peak rates for each workload: bytes within its footprint, operations of this target.
  std::optional<std::vector<Rates>> probe();

private:
  const Target &target;
  KernelUse use;
  std::vector<std::vector<int64_t>> workloads;
  MeasurementOptions options;
  std::vector<KernelData> data; // one per workload
};

} // namespace kiln
