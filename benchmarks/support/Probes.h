// SPDX-License-Identifier: Apache-2.0
//
// The machine's limits, measured in the same run as everything else: a core may be shared with another virtual machine,
// so a rate from a data sheet, or from another day, says little.
#pragma once

#include "benchmarks/support/Threads.h"

#include <functional>

namespace kiln::bench {

/// Returns the seconds of one run.
double secondsOf(const std::function<void()> &run);

/// One call of `run` does `amount` operations, or moves `amount` bytes.
struct Probe {
  std::function<void()> run;
  double amount = 0;
};

/// Floating-point operations of independent f32 fused multiply-adds in registers, with the widest vectors that the CPU
/// has; two operations each.
Probe makeFmaProbe(const Threads &threads);
/// Bytes read repeatedly from a buffer of this size.
Probe makeReadProbe(const Threads &threads, std::size_t bytes);
/// Bytes read plus bytes written by memcpy between the two halves of a buffer of this size.
Probe makeCopyProbe(const Threads &threads, std::size_t bytes);

/// Returns the instructions per cycle of a CPU for independent instructions: the minimum over the threads' CPUs. Half
/// of the usual rate of this kind of CPU (M-0901, M-0908) indicates that another thread runs on the same core, for
/// example of another virtual machine. Multiply-adds by themselves hardly suffer (M-0902), a loop that also has loads
/// does (M-0905).
double instructionsPerCycle(const Threads &threads);

/// Reads a file into fresh pages, as a program does that loads weights; a file that cannot be read ends the program.
void readFile(const std::string &path);

/// The instruction set of the probes: "avx512f" or "avx2"; null if the CPU has neither.
const char *probeIsa();

} // namespace kiln::bench
