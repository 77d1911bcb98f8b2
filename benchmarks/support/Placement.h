// SPDX-License-Identifier: Apache-2.0
//
// Where threads run while something is measured. A thread that is woken often starts on the CPU of the one that woke
// it, and on a virtual machine the two may take turns there for milliseconds while another CPU idles; then a library
// seems not to scale that does. So everybody's threads, ours and the peers', are kept off the caller's CPU.
#pragma once

#include <sched.h>

namespace kiln::bench {

/// While it lives, the calling thread stays on its CPU, and the others of the program, those of its libraries, stay off
/// it. They keep to that until the next placement. Does nothing for one thread or one CPU.
class Placement {
public:
  explicit Placement(int threads);
  ~Placement();
  Placement(const Placement &) = delete;
  Placement &operator=(const Placement &) = delete;

  /// The CPU that the calling thread keeps to, always the same.
  static int callersCpu();

private:
  cpu_set_t before;
  bool isPlaced = false;
};

/// Returns when the program's threads have stopped looking for work, which some libraries' do for tens of milliseconds
/// after a call.
void waitUntilQuiet();

} // namespace kiln::bench
