// SPDX-License-Identifier: Apache-2.0
//
// What the machine can do at best, measured in the same run as everything else: a core may be shared with another
// machine's, so a rate from a data sheet, or from yesterday, says little.
#pragma once

#include "benchmarks/support/Threads.h"

#include <functional>

namespace kiln::bench {

/// Of one run.
double secondsOf(const std::function<void()> &run);

/// One call of `run` does `amount` operations, or moves `amount` bytes.
struct Probe {
  std::function<void()> run;
  double amount = 0;
};

/// Floating point operations of independent f32 fused multiply-adds in registers, by the widest vectors that the CPU
/// has; two each.
Probe makeFmaProbe(const Threads &threads);
/// Bytes read, over and over, from a buffer of that many.
Probe makeReadProbe(const Threads &threads, std::size_t bytes);
/// Bytes read plus bytes written by memcpy between two halves of a buffer of that many.
Probe makeCopyProbe(const Threads &threads, std::size_t bytes);

/// How many instructions a CPU takes in a cycle, of ones that want nothing else: the least of the threads' CPUs. Half
/// of what its kind is known for (M-0901, M-0908) says that another thread runs on the same core, of another virtual
/// machine, say. Multiply-adds alone hardly notice (M-0902), a loop with loads beside them does (M-0905).
double instructionsPerCycle(const Threads &threads);

/// Reads a file into fresh pages, as a program does that loads weights; a file that cannot be read ends the program.
void readFile(const std::string &path);

/// The instruction set of the probes: "avx512f" or "avx2"; null if the CPU has neither.
const char *probeIsa();

} // namespace kiln::bench
