// SPDX-License-Identifier: Apache-2.0
// A call in a task of a cancelled group completes nevertheless.
#include "loops.h"

#include "kiln/executors/tbb.h"
#include <oneapi/tbb/task_group.h>

namespace kiln_test {
namespace {

TEST(TbbExecutor, DoesNotEndWithAGroupAroundIt) {
  tbb::task_arena threads(2);
  kiln::TbbExecutor executor(threads);
  threads.execute([&] {
    tbb::task_group group;
    group.run_and_wait([&] {
      group.cancel();
      expectComplete(executor.get(), 1000);
    });
  });
}

} // namespace
} // namespace kiln_test
