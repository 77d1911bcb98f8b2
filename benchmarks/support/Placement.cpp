// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/support/Placement.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <thread>
#include <unistd.h>

namespace kiln::bench {

int Placement::callersCpu() {
  static const int first = sched_getcpu();
  return first;
}

Placement::Placement(int threads) {
  if (threads == 1 || sched_getaffinity(0, sizeof before, &before) != 0)
    return;
  cpu_set_t own, others = before;
  CPU_ZERO(&own);
  CPU_SET(callersCpu(), &own);
  CPU_CLR(callersCpu(), &others);
  if (CPU_COUNT(&others) == 0)
    return;
  std::error_code gone; // a thread may end meanwhile
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task", gone))
    if (int id = std::atoi(task.path().filename().c_str()); id != gettid())
      sched_setaffinity(id, sizeof others, &others);
  isPlaced = sched_setaffinity(0, sizeof own, &own) == 0;
}

Placement::~Placement() {
  if (isPlaced)
    sched_setaffinity(0, sizeof before, &before);
}

static double processorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void waitUntilQuiet() {
  // Longer than the kernel's tick, at which it accounts the time of running threads.
  constexpr auto step = std::chrono::milliseconds(12);
  constexpr double quiet = 0.002; // seconds of all threads within a step
  for (int i = 0; i < 20; ++i) {
    double before = processorSeconds();
    std::this_thread::sleep_for(step);
    if (processorSeconds() - before < quiet)
      return;
  }
}

} // namespace kiln::bench
