// SPDX-License-Identifier: Apache-2.0
//
// What it takes to move bytes between ranks (alpha and beta, Hockney 1994), to add them up (Thakur et al. 2005), and to
// fill a pipeline (Narayanan et al. 2021). Times are seconds.
#pragma once

#include <cstdint>

namespace kiln {

/// A message of n bytes takes `latency` + n / `bandwidth`.
struct Link {
  double latency = 0, bandwidth = 1;
  double seconds(double bytes) const { return latency + bytes / bandwidth; }
};

/// Bytes that each rank sends for the sum of `bytes` over all: 2 (n - 1) / n of them, in a ring.
double ringBytes(double bytes, int64_t ranks);

/// A sum over all ranks, for each: pieces go around a ring twice; or in pairs, with twice as many ranks in each step.
double ringAllReduce(const Link &link, double bytes, int64_t ranks);
double treeAllReduce(const Link &link, double bytes, int64_t ranks);
/// The faster of both, as libraries take it.
double allReduce(const Link &link, double bytes, int64_t ranks);

/// Each rank gets what the others have; `bytes`: of one rank.
double allGather(const Link &link, double bytes, int64_t ranks);

/// Stages of a pipeline that work on micro-batches in turn, one forward and one back (1F1B). With `interleave` a stage
/// has so many parts of the model, between which lie the other stages'.
struct Pipeline {
  int64_t stages = 1, microbatches = 1, interleave = 1;

  /// Time in which a stage waits, in parts of the time in which it works: (p - 1) / (v m).
  double bubble() const;
  /// A step, if a micro-batch takes a stage so long, forward and back.
  double seconds(double stageSeconds) const;
};

/// Gradients are added up in so many parts, if that begins while others are computed.
inline constexpr int64_t gradientBuckets = 20;

/// What is left of a sum of gradients that begins in `buckets` while gradients are still computed for so long: the last
/// bucket's at the least.
double exposed(double communication, double window, int64_t buckets);

} // namespace kiln
