// SPDX-License-Identifier: Apache-2.0
//
// How contenders are compared: all of them, and the machine's limits, take turns in every round of one run, and what is
// reported are medians of the rounds' quotients. A machine that slows down for a while slows down all of them.
#pragma once

#include "benchmarks/support/Probes.h"

#include <benchmark/benchmark.h>
#include <span>
#include <string>

namespace kiln::bench {

/// One way to do the work. Several contenders of one name are variants: the fastest counts.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::span<const float> output; // what run() writes; checked against the first contender's unless empty
  /// For what is not timed from here, or not from its start: does it once and returns the seconds.
  std::function<double()> measure = nullptr;
};

enum class Unit { GigaflopsPerSecond, GigabytesPerSecond, Milliseconds };

/// What one call has to do at the least. The limit of a call is the longer of the times that the probes take for it.
struct Work {
  Unit unit;
  double amount;           // operations or bytes, for the unit; milliseconds want none
  double flops = 0;        // against fused multiply-adds
  double bytesRead = 0;    // against a read of as many bytes
  double bytesCopied = 0;  // read plus written, against a copy of as many
  std::string file = {};   // against reading it into memory
  double tolerance = 1e-4; // between outputs, relative to the largest value
};

/// Times the contenders, the first of which is ours, and fills the counters of `state`: "threads", "ours", each peer by
/// its name, "ratio" (the best peer's time over ours; absent without peers), "limit_fraction" (the limit's time over
/// ours) and "best_fraction" (the same of the least times of both; both absent without limits), "others" (what other
/// programs took of a CPU meanwhile), "issue" (instructionsPerCycle()).
void compare(benchmark::State &state, const Threads &threads, const Work &work, std::vector<Contender> contenders);

/// Registers a benchmark that makes its contenders and calls compare(); rounds is how often each takes its turn.
void add(const std::string &name, int threads, int rounds,
         const std::function<void(benchmark::State &, const Threads &)> &body);

} // namespace kiln::bench
