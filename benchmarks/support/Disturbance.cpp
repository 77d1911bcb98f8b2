// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/support/Disturbance.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>
#include <unistd.h>

namespace kiln::bench {

static double secondsOfClock(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// CPU time of all processes since the machine started, including time stolen by the hypervisor.
static double busySeconds() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, softInterrupts = 0, stolen = 0;
  file >> cpu >> user >> nice >> system >> idle >> waiting >> interrupts >> softInterrupts >> stolen;
  return (user + nice + system + interrupts + softInterrupts + stolen) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Disturbance::Disturbance()
    : startedAt(secondsOfClock(CLOCK_MONOTONIC)), busyBefore(busySeconds()),
      ownBefore(secondsOfClock(CLOCK_PROCESS_CPUTIME_ID)) {}

double Disturbance::share(double children) const {
  double own = secondsOfClock(CLOCK_PROCESS_CPUTIME_ID) - ownBefore + children;
  return std::max(0.0, busySeconds() - busyBefore - own) / (secondsOfClock(CLOCK_MONOTONIC) - startedAt);
}

} // namespace kiln::bench
