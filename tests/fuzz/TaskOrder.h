// SPDX-License-Identifier: Apache-2.0
//
// The order in which the tasks of a call run, in this process and in an emulator.
#pragma once

#include "Random.h"
#include "kiln/runtime.h"

#include <numeric>
#include <utility>
#include <vector>

namespace kiln::fuzz {

enum class TaskOrder { Serial, Threads, Shuffled };

/// Runs the tasks one after the other in a random order, each as a random worker.
struct ShuffledExecutor {
  ShuffledExecutor(uint32_t workers, std::uint64_t seed)
      : random(seed), executor{this, workers, [](void *self, uint32_t count, auto task, void *context) {
                                 static_cast<ShuffledExecutor *>(self)->run(count, task, context);
                               }} {}

  void run(uint32_t count, void (*task)(void *, uint32_t, uint32_t), void *context) {
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    for (uint32_t i = count; i > 1; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i))]);
    for (uint32_t i : order)
      task(context, i, static_cast<uint32_t>(random.below(executor.workers)));
  }

  Random random;
  kiln_executor_t executor;
};

} // namespace kiln::fuzz
