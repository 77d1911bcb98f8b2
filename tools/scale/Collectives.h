// SPDX-License-Identifier: Apache-2.0
//
// Cost formulas: of moving bytes between ranks (the alpha-beta model, Hockney 1994), of all-reduce (Thakur et al.
// 2005), and of filling a pipeline (Narayanan et al. 2021). Times are in seconds.
#pragma once

#include <cstdint>

namespace kiln {

/// A message of n bytes takes `latency` + n / `bandwidth`.
struct Link {
  double latency = 0, bandwidth = 1;
  double seconds(double bytes) const { return latency + bytes / bandwidth; }
};

/// Returns the bytes that each rank sends in a ring all-reduce of `bytes`: 2 (n - 1) / n of them.
double ringBytes(double bytes, int64_t ranks);

/// Return the time of an all-reduce: with a ring, in which chunks go around twice, and with recursive doubling.
double ringAllReduce(const Link &link, double bytes, int64_t ranks);
double treeAllReduce(const Link &link, double bytes, int64_t ranks);
/// Returns the time of the faster algorithm, as communication libraries select it.
double allReduce(const Link &link, double bytes, int64_t ranks);

/// Returns the time of an all-gather. `bytes`: of one rank.
double allGather(const Link &link, double bytes, int64_t ranks);

/// Pipeline stages with the 1F1B schedule: a stage alternates between a forward and a backward pass of micro-batches.
/// `interleave` is the number of model chunks (virtual stages) per stage.
struct Pipeline {
  int64_t stages = 1, microbatches = 1, interleave = 1;

  /// Returns the pipeline bubble, the idle time of a stage as a fraction of its busy time: (p - 1) / (v m).
  double bubble() const;
  /// Returns the time of a step in which one micro-batch takes `stageSeconds` per stage, forward and backward.
  double seconds(double stageSeconds) const;
};

/// The number of buckets of gradients, if their all-reduce overlaps with the backward pass.
inline constexpr int64_t gradientBuckets = 20;

/// Returns the exposed part of a gradient all-reduce of `buckets` buckets that overlaps with `window` seconds of
/// computation: at least the time of the last bucket.
double exposed(double communication, double window, int64_t buckets);

} // namespace kiln
