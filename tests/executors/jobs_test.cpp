// SPDX-License-Identifier: Apache-2.0
// Jobs that start late, at once or never; calls allocate no memory.
#include "loops.h"

#include "kiln/executors/jobs.h"
#include "kiln/executors/threads.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>

static std::atomic<long> allocations = 0;
[[gnu::noinline]] void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes))
    return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace kiln_test {
namespace {

/// An executor whose jobs start only when the test requests it.
struct Held {
  explicit Held(uint32_t workers) {
    executor.emplace(workers, [this](kiln::JobExecutor::Job job, void *data) { jobs.emplace_back(job, data); });
  }
  void start() {
    for (const auto &[job, data] : std::exchange(jobs, {}))
      job(data);
  }
  std::vector<std::pair<kiln::JobExecutor::Job, void *>> jobs;
  std::optional<kiln::JobExecutor> executor;
};

TEST(JobExecutor, NeedsNoJobToStart) {
  Held held(4);
  for (int repeat = 0; repeat < 10; ++repeat) {
    expectComplete(held.executor->get(), 20);
    EXPECT_EQ(held.jobs.size(), 3u) << "jobs that wait are not handed over again";
  }
  held.start();
}

TEST(JobExecutor, AsksForNoMoreJobsThanTasks) {
  Held held(4);
  expectComplete(held.executor->get(), 1);
  EXPECT_EQ(held.jobs.size(), 0u);
  expectComplete(held.executor->get(), 3);
  EXPECT_EQ(held.jobs.size(), 2u);
  held.start();
}

// Late jobs must not access a loop that has ended.
TEST(JobExecutor, LateJobsDoNothing) {
  Held held(3);
  auto loop = std::make_unique<Loop>(10, 3);
  held.executor->get()->parallel_for(held.executor->get()->self, 10, runTask, loop.get());
  loop.reset();
  ASSERT_EQ(held.jobs.size(), 2u);
  held.start();
  expectComplete(held.executor->get(), 10);
  EXPECT_EQ(held.jobs.size(), 2u) << "jobs that returned are handed over again";
  held.start();
}

// Two tasks wait for each other: the caller's task starts the job that the previous loop submitted.
TEST(JobExecutor, LateJobsJoinALaterLoop) {
  struct Meeting {
    Held held{2};
    std::thread late;
    std::atomic<uint32_t> workers = 0; // a bit for each worker that arrived
  } meeting;
  auto meet = [](void *context, uint32_t, uint32_t worker) {
    auto &[held, late, workers] = *static_cast<Meeting *>(context);
    if (worker == 0)
      late = std::thread([&held = held] { held.start(); });
    workers |= 1u << worker;
    while (workers != 3)
      std::this_thread::yield();
  };
  const kiln_executor_t *executor = meeting.held.executor->get();
  expectComplete(executor, 2);
  ASSERT_EQ(meeting.held.jobs.size(), 1u);
  executor->parallel_for(executor->self, 2, meet, &meeting);
  meeting.late.join();
  EXPECT_EQ(meeting.workers, 3u);
}

TEST(JobExecutor, JobsOutliveIt) {
  Held held(3);
  expectComplete(held.executor->get(), 5);
  held.executor.reset();
  ASSERT_EQ(held.jobs.size(), 2u);
  held.start();
}

TEST(JobExecutor, JobsMayRunWhereTheyAreHandedOver) {
  kiln::JobExecutor executor(3, [](kiln::JobExecutor::Job job, void *data) { job(data); });
  for (int repeat = 0; repeat < 10; ++repeat)
    expectComplete(executor.get(), 20);
}

TEST(ThreadExecutor, AllocatesNothingInALoop) {
  kiln::ThreadExecutor executor(3);
  Loop loop(100, 3);
  long before = allocations;
  ::operator delete(::operator new(10));
  EXPECT_GT(allocations, before) << "the count works";
  before = allocations;
  for (int repeat = 0; repeat < 100; ++repeat)
    executor.get()->parallel_for(executor.get()->self, 100, runTask, &loop);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(loop.Runs[99], 100);
}

} // namespace
} // namespace kiln_test
