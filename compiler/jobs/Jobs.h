// SPDX-License-Identifier: Apache-2.0
//
// Jobs: functions that run in forked children, so that one which crashes, hangs or eats the memory is an outcome and
// not the end of the compiler. A child is a copy of this process: nothing has to be written out for it, and it gives
// back bytes. The process must be single threaded (MLIR's threads are disabled). Children die with the thread that
// started them, write no core file, and have SIGINT, SIGTERM and SIGHUP at their defaults.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace kiln {

enum class JobOutcome { Done, Failed, Crashed, TimedOut };

/// "done", "failed", "crashed", "timed out".
llvm::StringRef toString(JobOutcome outcome);

/// What became of a job.
struct JobResult {
  JobOutcome outcome = JobOutcome::Failed;
  std::string bytes;      // what it returned, if it is done
  std::string error;      // if it is not: words, "killed by signal 11 (Segmentation fault)"
  std::string output;     // what it wrote to its standard output and error, the last 64 KiB
  int signal = 0;         // that killed it, if it crashed
  double seconds = 0;     // from its start to its end
  uint64_t peakBytes = 0; // most memory that it held at a time, with what it shares with this process
};

/// 0 means without a limit.
struct JobLimits {
  double seconds = 0;       // after which the child is killed
  uint64_t memoryBytes = 0; // address space beyond what this process has when the job starts
};

struct Job {
  std::function<llvm::Expected<std::string>()> run; // its return value is all that leaves the child; errors and
                                                    // exceptions are the outcome Failed
  std::vector<int> cpus;                            // that it may use; none: those of this process
};

/// Jobs that run at the same time. Destroying it kills those that still run.
class JobGroup {
public:
  explicit JobGroup(JobLimits limits = {});
  ~JobGroup();
  JobGroup(const JobGroup &) = delete;
  JobGroup &operator=(const JobGroup &) = delete;

  /// Starts a job at once; `tag` says in wait() which it was. A job that cannot be started has Failed.
  void start(const Job &job, size_t tag);
  /// How many were started and not yet returned by wait().
  size_t size() const;
  /// Waits for the next job to end, at most `seconds` if given; nothing if none has ended, or none is left.
  std::optional<std::pair<size_t, JobResult>> wait(std::optional<double> seconds = std::nullopt);

private:
  struct Running;
  void read(Running &job);
  void reap(Running &job);

  JobLimits limits;
  std::vector<Running> running;
};

/// Runs all jobs, at most `workers` at a time, and returns their results in the order of `jobs`. `onFinished` hears of
/// each as it ends, in whatever order that is.
std::vector<JobResult> runJobs(llvm::ArrayRef<Job> jobs, unsigned workers, JobLimits limits = {},
                               llvm::function_ref<void(size_t index, const JobResult &result)> onFinished = nullptr);
JobResult runJob(const Job &job, JobLimits limits = {});

/// Runs the job in this process, without limits and on any CPU: what a child does, and for callers that are one
/// themselves. The outcome is Done or Failed, and nothing but bytes or error is set; a crash is the caller's.
JobResult runHere(const Job &job);

/// The CPUs that this process may use, ascending; never empty.
std::vector<int> availableCpus();

} // namespace kiln
