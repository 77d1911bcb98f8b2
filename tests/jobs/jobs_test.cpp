// SPDX-License-Identifier: Apache-2.0
//
// All outcomes of a job, none of which affects the parent or another job.
#include "compiler/jobs/Jobs.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <sched.h>
#include <set>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;
using Bytes = llvm::Expected<std::string>;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Job job(std::function<Bytes()> run) { return {std::move(run), {}}; }

/// Sleeps forever.
Bytes hang() {
  for (;;)
    pause();
}

TEST(Job, ReturnsBytes) {
  JobResult result = runJob(job([]() -> Bytes { return std::string("a\0b", 3); }));
  EXPECT_EQ(result.outcome, JobOutcome::Done);
  EXPECT_EQ(result.bytes, std::string("a\0b", 3));
  EXPECT_EQ(result.error, "");
  EXPECT_GT(result.seconds, 0);
  EXPECT_GT(result.peakBytes, 1u << 16);
}

TEST(Job, ReturnsNothing) {
  JobResult result = runJob(job([]() -> Bytes { return ""; }));
  EXPECT_EQ(result.outcome, JobOutcome::Done);
  EXPECT_EQ(result.bytes, "");
}

// Much more than a pipe's capacity.
TEST(Job, ReturnsMegabytes) {
  std::string large(23'456'789, '\0');
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<char>(i * 2654435761u >> 13);
  JobResult result = runJob(job([&]() -> Bytes { return large; }));
  EXPECT_EQ(result.outcome, JobOutcome::Done);
  EXPECT_TRUE(result.bytes == large);
}

TEST(Job, SeesTheMemoryOfItsParentAndChangesItsOwn) {
  int value = 41;
  JobResult result = runJob(job([&]() -> Bytes { return std::to_string(++value); }));
  EXPECT_EQ(result.bytes, "42");
  EXPECT_EQ(value, 41);
}

TEST(Job, Fails) {
  JobResult result =
      runJob(job([]() -> Bytes { return llvm::createStringError("schedule: no row; expected one, got none"); }));
  EXPECT_EQ(result.outcome, JobOutcome::Failed);
  EXPECT_EQ(result.error, "schedule: no row; expected one, got none");
  EXPECT_EQ(result.bytes, "");
}

TEST(Job, ThrowingIsFailing) {
  JobResult result = runJob(job([]() -> Bytes { throw std::runtime_error("thrown"); }));
  EXPECT_EQ(result.outcome, JobOutcome::Failed);
  EXPECT_EQ(result.error, "thrown");
}

// The outcomes of a child, in the calling process.
TEST(Job, RunsHere) {
  int value = 41;
  JobResult result = runHere(job([&]() -> Bytes { return std::to_string(++value); }));
  EXPECT_EQ(result.outcome, JobOutcome::Done);
  EXPECT_EQ(result.bytes, "42");
  EXPECT_EQ(value, 42);
  result = runHere(job([]() -> Bytes { return llvm::createStringError("schedule: no row; expected one, got none"); }));
  EXPECT_EQ(result.outcome, JobOutcome::Failed);
  EXPECT_EQ(result.error, "schedule: no row; expected one, got none");
  result = runHere(job([]() -> Bytes { throw std::runtime_error("thrown"); }));
  EXPECT_EQ(result.outcome, JobOutcome::Failed);
  EXPECT_EQ(result.error, "thrown");
  result = runHere(job([]() -> Bytes { throw std::bad_alloc(); }));
  EXPECT_EQ(result.outcome, JobOutcome::Failed);
  EXPECT_EQ(result.error, "out of memory");
}

TEST(Job, CrashesByASignal) {
  for (int number : {SIGSEGV, SIGABRT, SIGKILL, SIGFPE}) {
    JobResult result = runJob(job([=]() -> Bytes {
      signal(number, SIG_DFL); // a sanitizer's handler would make it an exit
      raise(number);
      return "survived";
    }));
    EXPECT_EQ(result.outcome, JobOutcome::Crashed) << number;
    EXPECT_EQ(result.signal, number);
    EXPECT_EQ(result.error.rfind("killed by signal " + std::to_string(number), 0), 0u) << result.error;
    EXPECT_EQ(result.bytes, "");
  }
}

TEST(Job, LeavingEarlyIsACrash) {
  for (int status : {0, 3}) {
    JobResult result = runJob(job([=]() -> Bytes { _exit(status); }));
    EXPECT_EQ(result.outcome, JobOutcome::Crashed);
    EXPECT_EQ(result.signal, 0);
    EXPECT_EQ(result.error, "left with status " + std::to_string(status) + " before its end");
  }
}

TEST(Job, GivesWhatItPrinted) {
  JobResult result = runJob(job([]() -> Bytes {
    std::puts("to the output");
    std::fflush(stdout);
    std::fputs("to the errors\n", stderr);
    return "done";
  }));
  EXPECT_EQ(result.outcome, JobOutcome::Done);
  EXPECT_EQ(result.output, "to the output\nto the errors\n");
}

// The last lines before a crash are kept, however long the output is.
TEST(Job, KeepsTheLastWords) {
  JobResult result = runJob(job([]() -> Bytes {
    for (int i = 0; i < 20000; ++i)
      std::fprintf(stderr, "line %d of a chatty library\n", i);
    std::fputs("last words", stderr);
    signal(SIGABRT, SIG_DFL);
    std::abort();
  }));
  EXPECT_EQ(result.outcome, JobOutcome::Crashed);
  EXPECT_LE(result.output.size(), 64u << 10);
  EXPECT_TRUE(llvm::StringRef(result.output).ends_with("19999 of a chatty library\nlast words"));
}

// Output that this process has buffered is written once.
TEST(Job, DoesNotRepeatTheParentsOutput) {
  std::FILE *file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::fputs("buffered", file);
  runJob(job([]() -> Bytes { return ""; }));
  std::fflush(file);
  struct stat facts;
  ASSERT_EQ(fstat(fileno(file), &facts), 0);
  EXPECT_EQ(facts.st_size, 8);
  std::fclose(file);
}

TEST(Job, IsStoppedAtItsTime) {
  double begin = now();
  JobResult result = runJob(job(hang), {.seconds = 0.2});
  EXPECT_EQ(result.outcome, JobOutcome::TimedOut);
  EXPECT_EQ(result.error.rfind("took more than 0.2", 0), 0u) << result.error;
  EXPECT_GE(result.seconds, 0.19);
  EXPECT_LT(now() - begin, 20);
}

TEST(Job, IsStoppedEvenIfItIgnoresSignals) {
  JobResult result = runJob(job([]() -> Bytes {
                              for (int number : {SIGINT, SIGTERM, SIGHUP})
                                signal(number, SIG_IGN);
                              for (volatile bool isOn = true; isOn;)
                                ;
                              return "";
                            }),
                            {.seconds = 0.1});
  EXPECT_EQ(result.outcome, JobOutcome::TimedOut);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Job, IsRefusedMemoryBeyondItsLimit) {
  const auto touch = [](size_t bytes) {
    return job([=]() -> Bytes {
      std::vector<char> memory(bytes, 1);
      return std::to_string(std::count(memory.begin(), memory.end(), 1));
    });
  };
  JobResult small = runJob(touch(16 << 20), {.seconds = 0, .memoryBytes = 256 << 20});
  EXPECT_EQ(small.outcome, JobOutcome::Done);
  EXPECT_EQ(small.bytes, std::to_string(16 << 20));
  JobResult large = runJob(touch(512 << 20), {.seconds = 0, .memoryBytes = 256 << 20});
  EXPECT_EQ(large.outcome, JobOutcome::Failed);
  EXPECT_EQ(large.error, "out of memory");
}
#endif

TEST(Job, LeavesNoCore) {
  JobResult result = runJob(job([]() -> Bytes {
    rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    return std::to_string(limit.rlim_cur);
  }));
  EXPECT_EQ(result.bytes, "0");
}

TEST(Job, RunsOnItsCpus) {
  const int last = availableCpus().back();
  const auto cpus = []() -> Bytes {
    std::string text;
    for (int cpu : availableCpus())
      text += std::to_string(cpu) + " ";
    return text;
  };
  EXPECT_EQ(runJob({cpus, {last}}).bytes, std::to_string(last) + " ");
  EXPECT_EQ(runJob({cpus, {}}).bytes, *cpus());
  JobResult nowhere = runJob({cpus, {CPU_SETSIZE - 1}});
  EXPECT_EQ(nowhere.outcome, JobOutcome::Failed);
  EXPECT_EQ(nowhere.error.rfind("cannot pin a job to its CPUs", 0), 0u) << nowhere.error;
}

TEST(Jobs, KeepTheOrderOfTheirResults) {
  std::vector<Job> jobs;
  for (int i = 0; i < 100; ++i)
    jobs.push_back(job([=]() -> Bytes {
      usleep(1000 * (i * 37 % 11));
      return std::to_string(i);
    }));
  for (unsigned workers : {0, 1, 7, 200}) {
    std::multiset<size_t> heard;
    std::vector<JobResult> results = runJobs(jobs, workers, {}, [&](size_t index, const JobResult &result) {
      EXPECT_EQ(result.bytes, std::to_string(index));
      heard.insert(index);
    });
    ASSERT_EQ(results.size(), jobs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].bytes, std::to_string(i));
      EXPECT_EQ(heard.count(i), 1u);
    }
  }
}

TEST(Jobs, OfAllOutcomesDoNotDisturbEachOther) {
  std::vector<Job> jobs;
  for (int i = 0; i < 12; ++i)
    jobs.push_back(job([=]() -> Bytes {
      if (i % 4 == 1)
        return llvm::createStringError("no");
      if (i % 4 == 2)
        raise(SIGKILL);
      if (i % 4 == 3)
        return hang();
      return std::string(300'000, 'x');
    }));
  std::vector<JobResult> results = runJobs(jobs, 3, {.seconds = 1});
  const JobOutcome wanted[] = {JobOutcome::Done, JobOutcome::Failed, JobOutcome::Crashed, JobOutcome::TimedOut};
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].outcome, wanted[i % 4]) << i << ": " << toString(results[i].outcome).str();
}

TEST(Jobs, RunAtTheSameTime) {
  std::vector<Job> jobs(4, job([]() -> Bytes {
                          usleep(400'000);
                          return "";
                        }));
  double begin = now();
  runJobs(jobs, 4);
  EXPECT_LT(now() - begin, 1.5);
}

TEST(Jobs, None) { EXPECT_TRUE(runJobs({}, 2).empty()); }

TEST(JobGroup, WaitsNoLongerThanAsked) {
  JobGroup group;
  EXPECT_FALSE(group.wait());
  group.start(job(hang), 5);
  EXPECT_FALSE(group.wait(0.05));
  EXPECT_EQ(group.size(), 1u);
  group.start(job([]() -> Bytes { return "quick"; }), 6);
  auto finished = group.wait(30);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->first, 6u);
  EXPECT_EQ(finished->second.bytes, "quick");
}

TEST(JobGroup, KillsWhatRunsWhenItGoes) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  {
    JobGroup group;
    group.start(job([&]() -> Bytes {
                  const pid_t self = getpid();
                  EXPECT_EQ(write(pipes[1], &self, sizeof self), ssize_t(sizeof self));
                  return hang();
                }),
                0);
    pid_t child = 0;
    ASSERT_EQ(read(pipes[0], &child, sizeof child), ssize_t(sizeof child));
    EXPECT_EQ(kill(child, 0), 0);
  }
  close(pipes[0]);
  close(pipes[1]);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

// A killed compiler leaves no children: each holds the write end of a pipe, whose reader sees the end when all are
// gone.
TEST(JobGroup, DiesWithItsParent) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    std::vector<Job> jobs(3, job([&]() -> Bytes {
                            EXPECT_EQ(write(pipes[1], "s", 1), 1);
                            return hang();
                          }));
    runJobs(jobs, 3);
    _exit(0);
  }
  close(pipes[1]);
  char byte;
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(read(pipes[0], &byte, 1), 1);
  kill(parent, SIGKILL);
  EXPECT_EQ(waitpid(parent, nullptr, 0), parent);
  EXPECT_EQ(read(pipes[0], &byte, 1), 0) << "a child outlived its parent";
  close(pipes[0]);
}

} // namespace
