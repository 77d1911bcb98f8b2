// SPDX-License-Identifier: Apache-2.0
//
// The comparison of contenders: all of them, and probes of the machine's limits, take turns in every round of one run,
// and the results are medians of the quotients within a round. If the machine slows down for a while, this affects all
// of them.
#pragma once

#include "benchmarks/support/Probes.h"

#include <benchmark/benchmark.h>
#include <span>
#include <string>

namespace kiln::bench {

/// One implementation of the work. Contenders with the same name are variants: the fastest counts.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::span<const float> output; // written by run(); compared with the first contender's unless empty
  /// For contenders that time themselves, completely or partly: does the work once and returns the seconds.
  std::function<double()> measure = nullptr;
};

enum class Unit { GigaflopsPerSecond, GigabytesPerSecond, Milliseconds };

/// The minimum work of one call. The limit of a call is the longest of the times of the probes for it.
struct Work {
  Unit unit;
  double amount;           // operations or bytes, for the unit; unused for milliseconds
  double flops = 0;        // compared with fused multiply-adds
  double bytesRead = 0;    // compared with a read of as many bytes
  double bytesCopied = 0;  // read plus written, compared with a copy of as many
  std::string file = {};   // compared with reading it into memory
  double tolerance = 1e-4; // difference between outputs, relative to the largest value
};

/// Times the contenders, the first of which is ours, and fills the counters of `state`: "threads", "ours", each peer by
/// name, "ratio" (the best peer's time over ours; absent without peers), "limit_fraction" (the limit's time over ours)
/// and "best_fraction" (the same for the minimum times of both; both absent without limits), "others" (the CPU share of
/// other programs), "issue" (instructionsPerCycle()).
void compare(benchmark::State &state, const Threads &threads, const Work &work, std::vector<Contender> contenders);

/// Registers a benchmark that creates its contenders and calls compare(); `rounds` is the number of turns of each.
void add(const std::string &name, int threads, int rounds,
         const std::function<void(benchmark::State &, const Threads &)> &body);

} // namespace kiln::bench
