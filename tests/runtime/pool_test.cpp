// SPDX-License-Identifier: Apache-2.0
// The bundled pool: every index once, no worker number twice at the same time, callers that queue, threads that sleep
// and wake.
#include "loops.h"
#include "support.h"

#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <pthread.h>
#include <thread>

// The linker redirects the runtime's calls here (--wrap), so that tests can make the start of threads fail.
static std::atomic<int> ThreadsThatStart = -1; // -1 for all
extern "C" int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
extern "C" int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                                     void *argument) {
  if (ThreadsThatStart >= 0 && ThreadsThatStart-- == 0)
    return EAGAIN;
  return __real_pthread_create(thread, attributes, start, argument);
}

using kiln_test::expectComplete;

namespace {

using Pool = std::unique_ptr<kiln_pool_t, decltype(&kiln_pool_destroy)>;

Pool makePool(uint32_t threads) {
  kiln_pool_t *pool = nullptr;
  kiln_error_t error;
  EXPECT_EQ(kiln_pool_create(threads, &pool, &error), KILN_OK) << error.message;
  return {pool, kiln_pool_destroy};
}

TEST(Pool, RunsEveryIndexOnce) {
  for (uint32_t threads : {1u, 2u, 3u, 8u}) {
    Pool pool = makePool(threads);
    const kiln_executor_t *executor = kiln_pool_executor(pool.get());
    EXPECT_EQ(executor->workers, threads);
    for (uint32_t count : {0u, 1u, 2u, 3u, 7u, 8u, 9u, 64u, 1000u})
      for (int repeat = 0; repeat < 20; ++repeat)
        expectComplete(executor, count);
  }
}

// A thread runs its indices in ascending order until it helps the other thread.
TEST(Pool, ThreadsGoUpwards) {
  Pool pool = makePool(2);
  const kiln_executor_t *executor = kiln_pool_executor(pool.get());
  struct Order {
    std::vector<uint32_t> of[2];
  } order;
  auto note = [](void *context, uint32_t index, uint32_t worker) {
    static_cast<Order *>(context)->of[worker].push_back(index);
  };
  executor->parallel_for(executor->self, 64, note, &order);
  EXPECT_EQ(order.of[0].size() + order.of[1].size(), 64u);
  for (uint32_t worker : {0u, 1u})
    for (size_t i = 0; i < order.of[worker].size(); ++i)
      EXPECT_EQ(order.of[worker][i], i < 32 ? 32 * worker + i : 64 - 32 * worker - 1 - (i - 32));
}

TEST(Pool, RunsLongLoopsInParts) {
  Pool pool = makePool(3);
  for (uint32_t count : {65534u, 65535u, 65536u, 200001u})
    expectComplete(kiln_pool_executor(pool.get()), count);
}

// The caller has the first half of the loop, the second thread the other half; the one that finishes first takes over
// indices from the end of the other's half.
TEST(Pool, ThreadsKeepTheirEndOfALoop) {
  Pool pool = makePool(2);
  const kiln_executor_t *executor = kiln_pool_executor(pool.get());
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<std::atomic<uint32_t>> workers(64);
    auto note = [](void *context, uint32_t index, uint32_t worker) {
      (*static_cast<std::vector<std::atomic<uint32_t>> *>(context))[index] = worker;
    };
    executor->parallel_for(executor->self, 64, note, &workers);
    for (size_t i = 1; i < 32; ++i) {
      ASSERT_LE(workers[i - 1], workers[i]) << i;
      ASSERT_GE(workers[31 + i], workers[32 + i]) << 32 + i;
    }
    EXPECT_TRUE(workers[31] == 0u || workers[63] == 1u);
  }
}

// The caller sees what the tasks write, and the tasks see what the caller writes: plain memory, for TSan to check.
TEST(Pool, LoopsAreOrderedWithTheCaller) {
  Pool pool = makePool(3);
  const kiln_executor_t *executor = kiln_pool_executor(pool.get());
  std::vector<uint64_t> values(100, 1);
  for (int repeat = 0; repeat < 50; ++repeat) {
    executor->parallel_for(
        executor->self, 100,
        [](void *context, uint32_t index, uint32_t) { (*static_cast<std::vector<uint64_t> *>(context))[index] *= 2; },
        &values);
    for (uint64_t &value : values)
      value += 1;
  }
  uint64_t expected = 1;
  for (int repeat = 0; repeat < 50; ++repeat)
    expected = expected * 2 + 1;
  EXPECT_EQ(values, std::vector<uint64_t>(100, expected));
}

// Two tasks that wait for each other can only end on two threads, one of which may have to wake up first.
TEST(Pool, ThreadsTakePartAlsoAfterSleeping) {
  Pool pool = makePool(2);
  const kiln_executor_t *executor = kiln_pool_executor(pool.get());
  for (int pause : {0, 0, 20, 20, 0}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    std::atomic<int> arrived = 0;
    executor->parallel_for(
        executor->self, 2,
        [](void *context, uint32_t, uint32_t) {
          auto &count = *static_cast<std::atomic<int> *>(context);
          ++count;
          while (count < 2)
            std::this_thread::yield();
        },
        &arrived);
    EXPECT_EQ(arrived, 2);
  }
}

// The caller runs out of work long before the others, and sleeps until the last task ends.
TEST(Pool, CallerWaitsForSlowTasks) {
  Pool pool = makePool(3);
  const kiln_executor_t *executor = kiln_pool_executor(pool.get());
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::atomic<int> ended = 0;
    executor->parallel_for(
        executor->self, 3,
        [](void *context, uint32_t, uint32_t worker) {
          std::this_thread::sleep_for(std::chrono::milliseconds(worker == 0 ? 1 : 20));
          ++*static_cast<std::atomic<int> *>(context);
        },
        &ended);
    EXPECT_EQ(ended, 3);
  }
}

TEST(Pool, CallersQueue) {
  Pool pool = makePool(3);
  const kiln_executor_t *executor = kiln_pool_executor(pool.get());
  std::vector<std::thread> callers;
  for (uint32_t caller = 0; caller < 6; ++caller)
    callers.emplace_back([=] {
      for (uint32_t repeat = 0; repeat < 200; ++repeat)
        expectComplete(executor, 1 + (caller * 7 + repeat) % 40);
    });
  for (std::thread &caller : callers)
    caller.join();
}

TEST(Pool, MayBeDestroyedAtAnyMoment) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    Pool pool = makePool(1 + repeat % 5);
    if (repeat % 3 == 0)
      expectComplete(kiln_pool_executor(pool.get()), 1 + repeat % 11);
  }
  kiln_pool_destroy(nullptr);
  EXPECT_EQ(kiln_pool_executor(nullptr), nullptr);
}

// The program's signal handlers must run on its own threads only.
TEST(Pool, ThreadsBlockSignals) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Pool pool = makePool(2);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGUSR1), sigismember(&after, SIGUSR1));
  struct {
    std::atomic<int> Arrived = 0, Blocked = 0;
  } seen;
  const kiln_executor_t *executor = kiln_pool_executor(pool.get());
  executor->parallel_for(
      executor->self, 2,
      [](void *context, uint32_t, uint32_t worker) {
        auto &self = *static_cast<decltype(seen) *>(context);
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        if (worker == 1)
          self.Blocked = sigismember(&mask, SIGUSR1);
        ++self.Arrived;
        while (self.Arrived < 2)
          std::this_thread::yield();
      },
      &seen);
  EXPECT_EQ(seen.Blocked, 1);
}

TEST(Pool, RefusalsHaveReasons) {
  kiln_pool_t *pool = reinterpret_cast<kiln_pool_t *>(1);
  kiln_error_t error;
  EXPECT_EQ(kiln_pool_create(2, nullptr, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "pool_create: null given; expected a place for the pool");
  EXPECT_EQ(kiln_pool_create(0, &pool, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "pool_create: no threads; expected at least 1");
  EXPECT_EQ(pool, nullptr);
}

TEST(Pool, FailsCleanlyWhenThreadsDoNotStart) {
  for (int started : {0, 1, 3}) {
    kiln_pool_t *pool = nullptr;
    kiln_error_t error;
    ThreadsThatStart = started;
    EXPECT_EQ(kiln_pool_create(5, &pool, &error), KILN_THREAD_ERROR);
    ThreadsThatStart = -1;
    EXPECT_EQ(error.message, "pool of 5 threads: too few started; expected 4, got " + std::to_string(started));
    EXPECT_EQ(pool, nullptr);
  }
}

} // namespace
