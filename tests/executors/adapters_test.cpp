// SPDX-License-Identifier: Apache-2.0
// Properties of every adapter: each index runs once, no worker number is used twice at a time; nested and concurrent
// loops.
#include "adapters.h"

#include "loops.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

namespace kiln_test {
namespace {

class Adapters : public testing::TestWithParam<Adapter> {
protected:
  void SetUp() override {
    if (!make(1))
      GTEST_SKIP() << "skipped: this build has no library for the adapter " << GetParam();
  }
  static std::shared_ptr<const kiln_executor_t> make(uint32_t workers) { return GetParam().make(workers); }
};
INSTANTIATE_TEST_SUITE_P(, Adapters, testing::ValuesIn(adapters), testing::PrintToStringParamName());

template <class Function> void runLoop(const kiln_executor_t &executor, uint32_t count, Function task) {
  executor.parallel_for(
      executor.self, count,
      [](void *context, uint32_t index, uint32_t worker) { (*static_cast<Function *>(context))(index, worker); },
      &task);
}

TEST_P(Adapters, RunEveryIndexOnce) {
  for (uint32_t workers : {1u, 2u, 3u, 5u}) {
    const auto executor = make(workers);
    EXPECT_EQ(executor->workers, workers);
    for (uint32_t count : {0u, 1u, 2u, 3u, 7u, 64u, 1000u, 200001u})
      for (int repeat = 0; repeat < (count > 1000 ? 1 : 20); ++repeat)
        expectComplete(executor.get(), count);
  }
}

// Two tasks that wait for each other can end only on two threads.
TEST_P(Adapters, RunTasksConcurrently) {
  if (std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << "skipped: oneTBB has no second thread where there is one CPU";
  const auto executor = make(2);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<int> arrived = 0;
    runLoop(*executor, 2, [&](uint32_t, uint32_t) {
      ++arrived;
      while (arrived < 2)
        std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST_P(Adapters, CallTheCallerWorkerZero) {
  const auto executor = make(3);
  std::atomic<int> mistaken = 0;
  for (int repeat = 0; repeat < 50; ++repeat)
    runLoop(*executor, 30, [&, caller = std::this_thread::get_id()](uint32_t, uint32_t worker) {
      mistaken += (std::this_thread::get_id() == caller) != (worker == 0);
    });
  EXPECT_EQ(mistaken, 0);
}

// Writes of tasks are visible to the caller, and vice versa: through plain memory, which the thread sanitizer checks.
TEST_P(Adapters, OrderLoopsWithTheCaller) {
  const auto executor = make(3);
  std::vector<uint64_t> values(100, 1);
  uint64_t expected = 1;
  for (int repeat = 0; repeat < 50; ++repeat) {
    runLoop(*executor, 100, [&](uint32_t index, uint32_t) { values[index] *= 2; });
    for (uint64_t &value : values)
      value += 1;
    expected = expected * 2 + 1;
  }
  EXPECT_EQ(values, std::vector<uint64_t>(100, expected));
}

// Tasks are long enough for threads to wait inside of one, where they must not begin another task of the outer loop.
TEST_P(Adapters, RunLoopsInsideOfLoops) {
  for (uint32_t workers : {1u, 2u, 3u}) {
    const auto executor = make(workers);
    Loop outer(20, workers);
    runLoop(*executor, 20, [&](uint32_t index, uint32_t worker) {
      outer.Clashes += outer.IsBusy[worker].exchange(true);
      std::atomic<uint32_t> inner = 0;
      runLoop(*executor, index, [&](uint32_t, uint32_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        ++inner;
      });
      EXPECT_EQ(inner, index);
      ++outer.Runs[index];
      outer.IsBusy[worker] = false;
    });
    EXPECT_EQ(outer.Clashes, 0);
    for (const std::atomic<int> &runs : outer.Runs)
      EXPECT_EQ(runs, 1);
  }
}

TEST_P(Adapters, ServeSeveralCallers) {
  const auto executor = make(3);
  std::vector<std::thread> callers;
  for (uint32_t caller = 0; caller < 5; ++caller)
    callers.emplace_back([&, caller] {
      for (uint32_t repeat = 0; repeat < 100; ++repeat)
        expectComplete(executor.get(), (caller * 7 + repeat) % 40);
    });
  for (std::thread &caller : callers)
    caller.join();
}

TEST_P(Adapters, MayEndAtAnyMoment) {
  for (uint32_t repeat = 0; repeat < 50; ++repeat) {
    const auto executor = make(1 + repeat % 4);
    if (repeat % 3 != 0)
      expectComplete(executor.get(), repeat % 11);
  }
}

} // namespace
} // namespace kiln_test
