// SPDX-License-Identifier: Apache-2.0
// Job systems as in programs: one with threads, which starts jobs when a thread is free, and one whose jobs start when
// the test requests it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kiln_test {

using Job = std::pair<void (*)(void *), void *>;

class JobSystem {
public:
  explicit JobSystem(unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      threads.emplace_back([this] { run(); });
  }
  ~JobSystem() {
    {
      std::lock_guard guard(lock);
      isClosing = true;
    }
    changed.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }
  void submit(Job job) {
    {
      std::lock_guard guard(lock);
      jobs.push_back(job);
    }
    changed.notify_one();
  }

private:
  void run() {
    for (std::unique_lock guard(lock);;) {
      changed.wait(guard, [this] { return isClosing || !jobs.empty(); });
      if (jobs.empty())
        return;
      const Job job = jobs.front();
      jobs.pop_front();
      guard.unlock();
      job.first(job.second);
      guard.lock();
    }
  }

  std::mutex lock;
  std::condition_variable changed;
  std::deque<Job> jobs;
  bool isClosing = false;
  std::vector<std::thread> threads;
};

} // namespace kiln_test
