// SPDX-License-Identifier: Apache-2.0
//
// 1. A child gets two pipes: one for its result, one for its standard output and error.
// 2. It writes one record, a status byte and the bytes or the error message, and exits without running exit handlers.
// 3. The parent polls the pipes of all children. The end of the result pipe is the end of a child. A child that wrote
//    no complete record has crashed, unless it was killed for exceeding its time limit.
#include "compiler/jobs/Jobs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln {

using Clock = std::chrono::steady_clock;

static constexpr size_t outputLimit = 64 << 10;
// The first byte of a record. None is 0, so that a record cut off at its beginning is never taken for one.
static constexpr char doneRecord = 'd', failedRecord = 'f';
static constexpr size_t recordHeader = 1 + sizeof(uint64_t);

llvm::StringRef toString(JobOutcome outcome) {
  switch (outcome) {
  case JobOutcome::Done:
    return "done";
  case JobOutcome::Failed:
    return "failed";
  case JobOutcome::Crashed:
    return "crashed";
  case JobOutcome::TimedOut:
    return "timed out";
  }
  llvm_unreachable("not an outcome");
}

std::vector<int> availableCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu : llvm::seq(0, CPU_SETSIZE))
      if (CPU_ISSET(cpu, &set))
        cpus.push_back(cpu);
  if (cpus.empty()) // the machine has more CPUs than a cpu_set_t can hold
    for (int cpu : llvm::seq(0l, std::max(1l, sysconf(_SC_NPROCESSORS_ONLN))))
      cpus.push_back(cpu);
  return cpus;
}

JobResult runHere(const Job &job) {
  JobResult result;
  try {
    if (llvm::Expected<std::string> bytes = job.run()) {
      result.outcome = JobOutcome::Done;
      result.bytes = std::move(*bytes);
    } else {
      result.error = llvm::toString(bytes.takeError());
    }
  } catch (const std::bad_alloc &) {
    result.error = "out of memory";
  } catch (const std::exception &exception) {
    result.error = exception.what();
  }
  return result;
}

//===- The child ---------------------------------------------------------===//

static uint64_t addressSpaceBytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

/// Returns the error message, or an empty string.
static std::string prepareChild(const Job &job, const JobLimits &limits, pid_t parent) {
  // The parent may have died before the call, in which case its death sends no signal.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
    _exit(1);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit noCore{0, 0};
  setrlimit(RLIMIT_CORE, &noCore);
  if (limits.memoryBytes != 0) {
    const rlim_t bytes = addressSpaceBytes() + limits.memoryBytes;
    const rlimit space{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &space) != 0)
      return llvm::formatv("cannot bound the memory of a job: {0}", strerror(errno));
  }
  if (!job.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : job.cpus)
      if (cpu >= 0 && cpu < CPU_SETSIZE)
        CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
      return llvm::formatv("cannot pin a job to its CPUs: {0}", strerror(errno));
  }
  return "";
}

static void writeAll(int descriptor, llvm::StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR)
      return; // the parent is gone
    bytes = bytes.drop_front(std::max<ssize_t>(written, 0));
  }
}

[[noreturn]] static void runChild(const Job &job, const JobLimits &limits, pid_t parent, int results, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  JobResult result = runHere({[&]() -> llvm::Expected<std::string> {
                                if (std::string wrong = prepareChild(job, limits, parent); !wrong.empty())
                                  return llvm::createStringError(wrong);
                                return job.run();
                              },
                              {}});
  std::fflush(nullptr);
  llvm::outs().flush();
  const bool isDone = result.outcome == JobOutcome::Done;
  const std::string &bytes = isDone ? result.bytes : result.error;
  const uint64_t size = bytes.size();
  std::string header(1, isDone ? doneRecord : failedRecord);
  header.append(reinterpret_cast<const char *>(&size), sizeof size);
  writeAll(results, header);
  writeAll(results, bytes);
  _exit(0);
}

//===- The parent --------------------------------------------------------===//

struct JobGroup::Running {
  size_t tag;
  pid_t child = -1; // -1: ended, or never started
  int results = -1, output = -1;
  Clock::time_point begin = Clock::now();
  bool isKilled = false; // for exceeding its time limit
  std::string record;
  JobResult result;
};

JobGroup::JobGroup(JobLimits limits) : limits(limits) {}

size_t JobGroup::size() const { return running.size(); }

void JobGroup::start(const Job &job, size_t tag) {
  Running &started = running.emplace_back();
  started.tag = tag;
  // Otherwise the child has a copy of what is in these buffers, and writes it a second time.
  std::fflush(nullptr);
  llvm::outs().flush();
  int results[2], output[2];
  const auto fail = [&] { started.result.error = llvm::formatv("cannot start a job: {0}", strerror(errno)); };
  if (pipe2(results, O_CLOEXEC) != 0)
    return fail();
  if (pipe2(output, O_CLOEXEC) != 0) {
    fail();
    close(results[0]);
    close(results[1]);
    return;
  }
  const pid_t parent = getpid(), child = fork();
  if (child == 0)
    runChild(job, limits, parent, results[1], output[1]);
  if (child < 0)
    fail();
  close(results[1]);
  close(output[1]);
  if (child < 0) {
    close(results[0]);
    close(output[0]);
    return;
  }
  started.child = child;
  started.results = results[0];
  started.output = output[0];
  for (int descriptor : {results[0], output[0]})
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
}

/// Appends the bytes that are available; closes the pipe at its end.
static void drain(int &descriptor, std::string &to) {
  char block[1 << 16];
  while (descriptor >= 0) {
    ssize_t size = ::read(descriptor, block, sizeof block);
    if (size > 0) {
      to.append(block, size);
    } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
      close(descriptor);
      descriptor = -1;
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

void JobGroup::read(Running &job) {
  drain(job.results, job.record);
  drain(job.output, job.result.output);
  if (job.result.output.size() > outputLimit)
    job.result.output.erase(0, job.result.output.size() - outputLimit);
}

/// Whether `record` is complete. If so, sets the outcome and the bytes or the error of `result`.
static bool parseRecord(std::string &record, JobResult &result) {
  uint64_t size = 0;
  if (record.size() < recordHeader)
    return false;
  std::memcpy(&size, record.data() + 1, sizeof size);
  if (record.size() - recordHeader != size)
    return false;
  result.outcome = record[0] == doneRecord ? JobOutcome::Done : JobOutcome::Failed;
  record.erase(0, recordHeader);
  (result.outcome == JobOutcome::Done ? result.bytes : result.error) = std::move(record);
  return true;
}

void JobGroup::reap(Running &job) {
  int status = 0;
  rusage usage{};
  while (wait4(job.child, &status, 0, &usage) < 0 && errno == EINTR)
    ;
  job.child = -1;
  drain(job.output, job.result.output);
  for (int descriptor : {job.results, job.output})
    if (descriptor >= 0)
      close(descriptor);
  JobResult &result = job.result;
  result.seconds = std::chrono::duration<double>(Clock::now() - job.begin).count();
  result.peakBytes = static_cast<uint64_t>(usage.ru_maxrss) << 10;
  if (parseRecord(job.record, result))
    return;
  if (job.isKilled) {
    result.outcome = JobOutcome::TimedOut;
    result.error = llvm::formatv("took more than {0} seconds", limits.seconds);
    return;
  }
  result.outcome = JobOutcome::Crashed;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.error = llvm::formatv("killed by signal {0} ({1})", result.signal, strsignal(result.signal));
  } else {
    result.error = llvm::formatv("left with status {0} before its end", WEXITSTATUS(status));
  }
}

std::optional<std::pair<size_t, JobResult>> JobGroup::wait(std::optional<double> seconds) {
  const auto after = [](Clock::time_point begin, double seconds) {
    return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  std::optional<Clock::time_point> end;
  if (seconds)
    end = after(Clock::now(), *seconds);
  while (!running.empty()) {
    auto ended = llvm::find_if(running, [](const Running &job) { return job.results < 0; });
    if (ended != running.end()) {
      if (ended->child >= 0)
        reap(*ended);
      std::pair<size_t, JobResult> result(ended->tag, std::move(ended->result));
      running.erase(ended);
      return result;
    }
    const Clock::time_point now = Clock::now();
    if (end && now >= *end)
      return std::nullopt;
    std::optional<Clock::time_point> next = end;
    std::vector<pollfd> polled;
    for (Running &job : running) {
      if (limits.seconds > 0 && !job.isKilled) {
        const Clock::time_point deadline = after(job.begin, limits.seconds);
        if (deadline <= now) {
          job.isKilled = true;
          kill(job.child, SIGKILL);
        } else if (!next || deadline < *next) {
          next = deadline;
        }
      }
      polled.push_back({job.results, POLLIN, 0});
      polled.push_back({job.output, POLLIN, 0}); // ignored when it is closed
    }
    int milliseconds = -1;
    if (next) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
      milliseconds = static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
    }
    poll(polled.data(), polled.size(), milliseconds);
    for (Running &job : running)
      read(job);
  }
  return std::nullopt;
}

JobGroup::~JobGroup() {
  for (Running &job : running)
    if (job.child >= 0)
      kill(job.child, SIGKILL);
  for (Running &job : running)
    if (job.child >= 0)
      reap(job);
}

std::vector<JobResult> runJobs(llvm::ArrayRef<Job> jobs, unsigned workers, JobLimits limits,
                               llvm::function_ref<void(size_t, const JobResult &)> onFinished) {
  std::vector<JobResult> results(jobs.size());
  JobGroup group(limits);
  for (size_t next = 0; next < jobs.size() || group.size() > 0;) {
    for (; next < jobs.size() && group.size() < std::max(workers, 1u); ++next)
      group.start(jobs[next], next);
    auto finished = group.wait();
    assert(finished && "a job is running");
    auto &[index, result] = *finished;
    if (onFinished)
      onFinished(index, result);
    results[index] = std::move(result);
  }
  return results;
}

JobResult runJob(const Job &job, JobLimits limits) { return std::move(runJobs(job, 1, limits).front()); }

} // namespace kiln
