// SPDX-License-Identifier: Apache-2.0
// Checks the guarantees of an executor's loop, for the bundled pool and for those of other libraries.
#ifndef KILN_TESTS_RUNTIME_LOOPS_H
#define KILN_TESTS_RUNTIME_LOOPS_H

#include "kiln/runtime.h"

#include <atomic>
#include <gtest/gtest.h>
#include <vector>

namespace kiln_test {

struct Loop {
  explicit Loop(uint32_t count, uint32_t workers) : Runs(count), IsBusy(workers) {}
  std::vector<std::atomic<int>> Runs;
  std::vector<std::atomic<bool>> IsBusy;
  std::atomic<int> Clashes = 0;
};

inline void runTask(void *context, uint32_t index, uint32_t worker) {
  auto &loop = *static_cast<Loop *>(context);
  if (worker >= loop.IsBusy.size() || loop.IsBusy[worker].exchange(true)) {
    ++loop.Clashes;
    return;
  }
  ++loop.Runs[index];
  loop.IsBusy[worker] = false;
}

/// Expects every index once, and no worker number twice at the same time.
inline void expectComplete(const kiln_executor_t *executor, uint32_t count) {
  Loop loop(count, executor->workers);
  executor->parallel_for(executor->self, count, runTask, &loop);
  EXPECT_EQ(loop.Clashes, 0);
  for (uint32_t i = 0; i < count; ++i)
    ASSERT_EQ(loop.Runs[i], 1) << "index " << i << " of " << count << " on " << executor->workers;
}

} // namespace kiln_test
#endif // KILN_TESTS_RUNTIME_LOOPS_H
