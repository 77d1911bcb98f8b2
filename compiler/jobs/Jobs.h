// SPDX-License-Identifier: Apache-2.0
//
// Jobs are functions that run in forked children, so that a job which crashes, hangs or exhausts the memory is an
// outcome and does not end the compiler. A child is a copy of this process: its input need not be serialised, and it
// returns bytes. The process must be single threaded (MLIR's threads are disabled). Children die with the thread that
// started them, write no core file, and use the default actions of SIGINT, SIGTERM and SIGHUP.
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

/// Returns "done", "failed", "crashed" or "timed out".
llvm::StringRef toString(JobOutcome outcome);

/// The result of a job.
struct JobResult {
  JobOutcome outcome = JobOutcome::Failed;
  std::string bytes;      // what the job returned, if it is done
  std::string error;      // otherwise the error message: "killed by signal 11 (Segmentation fault)"
  std::string output;     // its standard output and error, the last 64 KiB
  int signal = 0;         // the signal that killed it, if it crashed
  double seconds = 0;     // wall-clock time from start to end
  uint64_t peakBytes = 0; // peak resident memory, including what it shares with this process
};

/// The limits of a job; 0 means no limit.
struct JobLimits {
  double seconds = 0;       // time limit, after which the child is killed
  uint64_t memoryBytes = 0; // address space beyond what this process has when the job starts
};

struct Job {
  std::function<llvm::Expected<std::string>()> run; // its return value is all that leaves the child; errors and
                                                    // exceptions are the outcome Failed
  std::vector<int> cpus;                            // the CPUs that it may use; empty: those of this process
};

/// Jobs that run at the same time. Destroying it kills those that still run.
class JobGroup {
public:
  explicit JobGroup(JobLimits limits = {});
  ~JobGroup();
  JobGroup(const JobGroup &) = delete;
  JobGroup &operator=(const JobGroup &) = delete;

  /// Starts a job immediately; `tag` identifies it in wait(). A job that cannot be started has the outcome Failed.
  void start(const Job &job, size_t tag);
  /// Returns how many jobs were started and not yet returned by wait().
  size_t size() const;
  /// Waits for the next job to end, at most `seconds` if given. Returns nothing if none has ended, or none is left.
  std::optional<std::pair<size_t, JobResult>> wait(std::optional<double> seconds = std::nullopt);

private:
  struct Running;
  void read(Running &job);
  void reap(Running &job);

  JobLimits limits;
  std::vector<Running> running;
};

/// Runs all jobs, at most `workers` at a time, and returns their results in the order of `jobs`. `onFinished` is called
/// when a job ends, in any order.
std::vector<JobResult> runJobs(llvm::ArrayRef<Job> jobs, unsigned workers, JobLimits limits = {},
                               llvm::function_ref<void(size_t index, const JobResult &result)> onFinished = nullptr);
JobResult runJob(const Job &job, JobLimits limits = {});

/// Runs the job in this process, without limits and on any CPU. Children use it, and callers that are a child
/// themselves. The outcome is Done or Failed, and only the bytes or the error are set; a crash ends the caller.
JobResult runHere(const Job &job);

/// Returns the CPUs that this process may use, ascending; never empty.
std::vector<int> availableCpus();

} // namespace kiln
