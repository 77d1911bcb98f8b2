// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An executor that starts its own std::threads (C++17), for platforms without the bundled pthread pool. It is a small
// job system on top of jobs.h, which must be in the same folder:
//
//   kiln::ThreadExecutor executor(std::thread::hardware_concurrency());
//   const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .executor = executor.get()};
//
// docs/executors.md has the rules.
#pragma once

#include "jobs.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace kiln {

class ThreadExecutor {
public:
  /// Starts workers - 1 threads, since the calling thread is a worker, too. Throws whatever std::thread throws.
  explicit ThreadExecutor(uint32_t workers) : ThreadExecutor(workers, NoThreads()) {
    while (threads.size() + 1 < workers) // if a thread fails to start, the destructor ends the others
      threads.emplace_back([this] { runJobs(); });
  }
  /// No call may use the executor any more.
  ~ThreadExecutor() {
    {
      const std::lock_guard<std::mutex> guard(lock);
      isClosing = true;
    }
    changed.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }
  ThreadExecutor(const ThreadExecutor &) = delete;
  ThreadExecutor &operator=(const ThreadExecutor &) = delete;

  /// For kiln_call_t::executor.
  const kiln_executor_t *get() const { return jobs.get(); }

private:
  struct NoThreads {};
  struct Waiting {
    JobExecutor::Job job;
    void *data;
  };

  ThreadExecutor(uint32_t workers, NoThreads)
      : jobs(workers, [this](JobExecutor::Job job, void *data) { submit({job, data}); }) {
    waiting.reserve(workers); // the maximum number of queued jobs
    threads.reserve(workers);
  }

  void submit(Waiting job) {
    {
      const std::lock_guard<std::mutex> guard(lock);
      waiting.push_back(job);
    }
    changed.notify_one();
  }

  void runJobs() {
    for (std::unique_lock<std::mutex> guard(lock);;) {
      changed.wait(guard, [this] { return isClosing || !waiting.empty(); });
      if (waiting.empty())
        return;
      const Waiting next = waiting.back();
      waiting.pop_back();
      guard.unlock();
      next.job(next.data);
      guard.lock();
    }
  }

  std::mutex lock; // guards `changed`, `waiting` and `isClosing`
  std::condition_variable changed;
  std::vector<Waiting> waiting; // unordered: all jobs are helpers of one loop
  bool isClosing = false;
  JobExecutor jobs;
  std::vector<std::thread> threads;
};

} // namespace kiln
