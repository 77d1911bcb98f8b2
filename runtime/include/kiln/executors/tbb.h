// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An executor on a oneTBB task arena (C++17), which the caller owns and which must outlive it:
//
//   tbb::task_arena threads(4);
//   kiln::TbbExecutor executor(threads);
//   const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .executor = executor.get()};
//
// docs/executors.md has the rules.
#pragma once

#ifndef KILN_RUNTIME_H // a generated NAME.h that was included before contains this header, too
#include "kiln/runtime.h"
#endif

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

namespace kiln {

class TbbExecutor {
public:
  /// The number of workers is the arena's maximum concurrency.
  explicit TbbExecutor(tbb::task_arena &threads)
      : arena(threads), executor{this, static_cast<uint32_t>(threads.max_concurrency()), parallelFor} {}
  TbbExecutor(const TbbExecutor &) = delete;
  TbbExecutor &operator=(const TbbExecutor &) = delete;

  /// For kiln_call_t::executor.
  const kiln_executor_t *get() const { return &executor; }

private:
  using Task = void (*)(void *context, uint32_t index, uint32_t worker);

  static uint32_t slot() { return static_cast<uint32_t>(tbb::this_task_arena::current_thread_index()); }

  /// Must be called inside the arena.
  static void run(uint32_t count, Task task, void *context) {
    const uint32_t own = slot();
    // A worker's number is its thread's slot, with the slots of the calling thread and 0 swapped, so that it is worker
    // 0.
    const auto workerOf = [own](uint32_t other) { return other == own ? 0 : other == 0 ? own : other; };
    tbb::parallel_for(uint32_t{0}, count, [&](uint32_t i) { task(context, i, workerOf(slot())); });
  }

  static void parallelFor(void *self, uint32_t count, Task task, void *context) noexcept {
    const auto &executor = *static_cast<TbbExecutor *>(self);
    // Isolated: a thread that waits for this loop takes no outer task, in which its worker number may be in use.
    executor.arena.execute([&] { tbb::this_task_arena::isolate([&] { run(count, task, context); }); });
  }

  tbb::task_arena &arena;
  kiln_executor_t executor;
};

} // namespace kiln
