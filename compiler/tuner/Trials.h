// SPDX-License-Identifier: Apache-2.0
//
// Candidates of one kernel, compiled and measured in child processes: whatever a candidate does, the tuner goes on and
// knows what it was.
#pragma once

#include "compiler/emit/Calls.h"
#include "compiler/jobs/Jobs.h"
#include "compiler/schedule/TuningFile.h"
#include "compiler/tuner/Compare.h"
#include "compiler/tuner/Probes.h"
#include "targets/target.h"

#include <variant>

namespace kiln {

/// How a candidate ended that gave no time.
struct FailedTrial {
  Outcome outcome; // not Measured
  std::string words;
};

struct TrialLimits {
  double compileSeconds = 60, measureSeconds = 20;
  uint64_t compileBytes = uint64_t(4) << 30;
};

struct TrialOptions {
  CompareOptions compare;
  TrialLimits limits;
  std::vector<int> cpus; // that measuring is pinned to
  RunnerOptions runner;  // for another machine
  unsigned compileWorkers = 1;
  std::function<bool()> goesOn; // asked several times a second; false kills what runs
};

/// For so many threads, here or on the machine that the script runs programs on. Here they are pinned, to others than
/// the first CPU if they can be: that one serves most interrupts.
TrialOptions makeTrialOptions(unsigned threads, const RunnerOptions &runner);

/// Runs jobs and asks `goesOn` meanwhile; nothing if it said no.
std::optional<std::vector<JobResult>> runWhile(llvm::ArrayRef<Job> jobs, unsigned workers, JobLimits limits,
                                               const std::function<bool()> &goesOn);

class KernelTrials {
public:
  KernelTrials(const Target &target, const KernelUse &use, const std::vector<std::vector<int64_t>> &workloads,
               int64_t rotatedBytes, const TrialOptions &options);

  template <typename T> using Result = std::variant<FailedTrial, T>;

  /// Compiles the points, several at a time; nothing if interrupted.
  std::optional<std::vector<Result<KernelCode>>> compile(llvm::ArrayRef<SchedulePoint> points);
  /// Compares a schedule's results with the interpreter's (Reference.h); nothing if interrupted. Gives why there was no
  /// reference, empty if there was; the words of a wrong schedule complete "the schedule".
  std::optional<Result<std::string>> check(const KernelCode &code);
  /// Measures a candidate beside the base; nothing if interrupted. `isFinal`: with all pairs that there is time for.
  std::optional<Result<std::vector<Comparison>>> measure(const KernelCode &base, const KernelCode &candidate,
                                                         bool isFinal = false);

  /// After so many seconds a measurement has timed out.
  void limitMeasuring(double seconds) { options.limits.measureSeconds = seconds; }

  /// What the machine does at best for each workload: its footprint's bytes, this target's operations.
  std::optional<std::vector<Rates>> probe();

private:
  const Target &target;
  KernelUse use;
  std::vector<std::vector<int64_t>> workloads;
  TrialOptions options;
  std::vector<KernelData> data; // one a workload
};

} // namespace kiln
