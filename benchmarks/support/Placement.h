// SPDX-License-Identifier: Apache-2.0
//
// Thread placement during measurements. A thread that is woken often starts on the CPU of the thread that woke it, and
// on a virtual machine the two may alternate there for milliseconds while another CPU idles; then a library that scales
// seems not to scale. So all threads, ours and the peers', are kept off the caller's CPU.
#pragma once

#include <sched.h>

namespace kiln::bench {

/// During its lifetime the calling thread is pinned to its CPU, and the program's other threads, which its libraries
/// created, are kept off it. These keep that affinity until the next placement. Does nothing for one thread or one CPU.
class Placement {
public:
  explicit Placement(int threads);
  ~Placement();
  Placement(const Placement &) = delete;
  Placement &operator=(const Placement &) = delete;

  /// The CPU that the calling thread is pinned to, always the same one.
  static int callersCpu();

private:
  cpu_set_t before;
  bool isPlaced = false;
};

/// Returns when the program's threads have stopped spinning for work, which some libraries do for tens of milliseconds
/// after a call.
void waitUntilQuiet();

} // namespace kiln::bench
