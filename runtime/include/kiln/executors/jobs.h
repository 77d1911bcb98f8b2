// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An executor on the caller's job system (C++17). It needs a function that submits a job, and the number of workers:
//
//   kiln::JobExecutor executor(4, [&](kiln::JobExecutor::Job job, void *data) { scheduler.submit(job, data); });
//   const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .executor = executor.get()};
//
// The calling thread takes part as worker 0. A loop ends when its tasks are done, whether or not a job has started: a
// job that starts later takes part in the loop that is running then, or returns at once. docs/executors.md has the
// rules.
#pragma once

#ifndef KILN_RUNTIME_H // a generated NAME.h that was included before contains this header, too
#include "kiln/runtime.h"
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kiln {

class JobExecutor {
public:
  using Job = void (*)(void *data);
  /// Arranges for job(data) to be called once, at any time and on any thread, including the current one. Must not
  /// throw.
  using Submit = std::function<void(Job job, void *data)>;

  /// `workers` includes the calling thread: at most workers - 1 jobs are queued or running at a time.
  JobExecutor(uint32_t workers, Submit submit)
      : handOver(std::move(submit)), shared(new Shared(workers)), executor{this, workers, parallelFor} {}
  /// No call may use the executor any more; jobs may still be queued.
  ~JobExecutor() { shared->release(); }
  JobExecutor(const JobExecutor &) = delete;
  JobExecutor &operator=(const JobExecutor &) = delete;

  /// For kiln_call_t::executor.
  const kiln_executor_t *get() const { return &executor; }

private:
  using Task = void (*)(void *context, uint32_t index, uint32_t worker);
  struct Shared;

  /// The data of a job, one for each worker except the first. A job that has not started serves later loops, too.
  struct Helper {
    Shared *shared = nullptr;
    uint32_t worker = 0;
    std::atomic<bool> isSubmitted = false;
  };

  /// The state that jobs access: it lives until the executor and all jobs have released it.
  struct Shared {
    static constexpr uint32_t open = 1u << 31;

    explicit Shared(uint32_t workers) : helpers(std::max(workers, 1u) - 1) {
      uint32_t last = 0;
      for (Helper &helper : helpers) {
        helper.shared = this;
        helper.worker = ++last;
      }
    }
    void release() {
      if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
        delete this;
    }
    void work(uint32_t worker) {
      for (uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
        task(context, static_cast<uint32_t>(i), worker);
    }

    std::vector<Helper> helpers;
    std::atomic<uint32_t> owners = 1;  // the executor and each submitted job
    std::atomic<bool> isTaken = false; // a thread's loop is using the helpers
    std::atomic<uint32_t> gate = 0;    // number of jobs inside, and `open` while more may enter
    std::atomic<uint64_t> next = 0;    // next task index; exceeds `count` by up to one per worker
    uint32_t count = 0;                // the following are read inside an open gate, and written while no job is inside
    Task task = nullptr;
    void *context = nullptr;
    std::mutex lock; // of the following, on which the calling thread waits for the last job to leave
    std::condition_variable isEmpty;
  };

  static void runJob(void *data) noexcept {
    Helper &helper = *static_cast<Helper *>(data);
    Shared &shared = *helper.shared;
    if (shared.gate.fetch_add(1, std::memory_order_acquire) & Shared::open)
      shared.work(helper.worker);
    helper.isSubmitted.store(false, std::memory_order_relaxed); // before the loop can end, since the next loop reads it
    if (shared.gate.fetch_sub(1, std::memory_order_release) == 1) {
      const std::lock_guard<std::mutex> guard(shared.lock); // the calling thread has not read the gate, or waits
      shared.isEmpty.notify_all();
    }
    shared.release();
  }

  void callHelpers(uint32_t wanted) {
    for (uint32_t i = 0; i < wanted; ++i)
      if (Helper &helper = shared->helpers[i]; !helper.isSubmitted.exchange(true, std::memory_order_relaxed)) {
        shared->owners.fetch_add(1, std::memory_order_relaxed);
        handOver(runJob, &helper);
      }
  }

  void runWithHelpers(uint32_t count, Task task, void *context) {
    shared->count = count;
    shared->task = task;
    shared->context = context;
    shared->next.store(0, std::memory_order_relaxed);
    shared->gate.fetch_add(Shared::open, std::memory_order_release);
    callHelpers(std::min<uint32_t>(count - 1, static_cast<uint32_t>(shared->helpers.size())));
    shared->work(0);
    shared->gate.fetch_sub(Shared::open, std::memory_order_relaxed);
    waitForHelpers();
  }

  /// Waits until no job is inside. Most leave soon, since all of them run out of tasks at the same time.
  void waitForHelpers() {
    const auto isEmpty = [this] { return shared->gate.load(std::memory_order_acquire) == 0; };
    for (int yields = 0; yields < 16; ++yields) {
      if (isEmpty())
        return;
      std::this_thread::yield();
    }
    std::unique_lock<std::mutex> guard(shared->lock);
    shared->isEmpty.wait(guard, isEmpty);
  }

  static void parallelFor(void *self, uint32_t count, Task task, void *context) noexcept {
    auto &executor = *static_cast<JobExecutor *>(self);
    // Another thread's loop may be using the helpers, or an enclosing loop of this thread.
    if (count < 2 || executor.shared->isTaken.exchange(true, std::memory_order_acquire)) {
      for (uint32_t i = 0; i < count; ++i)
        task(context, i, 0);
      return;
    }
    executor.runWithHelpers(count, task, context);
    executor.shared->isTaken.store(false, std::memory_order_release);
  }

  Submit handOver;
  Shared *shared;
  kiln_executor_t executor;
};

} // namespace kiln
