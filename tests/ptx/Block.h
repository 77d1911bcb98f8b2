// SPDX-License-Identifier: Apache-2.0
//
// A thread block and the cluster around it: shared memory, barriers, and whose turn it is. A launch without clusters
// has clusters of one block.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "Launch.h"
#include "Mbarrier.h"
#include "Warp.h"

namespace kiln::ptx {

/// What all blocks of a launch see.
struct LaunchContext {
  const Program &program;
  const std::byte *constants;
  LaunchConfig config;
  std::span<const std::byte> parameters;
  Memory &memory;
  /// Counts what other threads can wait for. Where all wait and it stands still, they wait for ever.
  std::uint64_t changes = 0;
  /// Of LaunchResult.
  std::uint64_t bankConflicts = 0;
};

class Cluster;

class Block {
public:
  Block(LaunchContext &launch, Cluster &cluster, Dim3 id, unsigned rank);

  LaunchContext &launch;
  Cluster &cluster;
  const Dim3 id;
  const unsigned rank; ///< in the cluster
  const std::uint32_t sharedBytes;
  std::vector<std::byte> shared;
  std::vector<std::uint8_t> written;         ///< of each shared byte: 0, 1, or `pending`
  static constexpr std::uint8_t pending = 2; ///< cp.async has not been waited for
  Races races;
  std::vector<std::unique_ptr<Warp>> warps;
  /// How many 16 bytes wgmma reads that has not been waited for.
  std::uint64_t matrixReaders = 0;
  /// That none of them is among these bytes, which are to be written.
  void checkMatrixReads(std::uint32_t offset, unsigned bytes, int lane) const;
  Mbarriers mbarriers;
  /// Another block's thread, or a copy, reaches this block's shared memory: the block is not to end before it knows.
  void visit(const Accessor &who);

  /// bar.sync and bar.arrive of the lanes of `warp` that execute. No `count`: all threads that live.
  void barrier(Warp &warp, unsigned id, std::uint32_t count, bool stops);
  /// After threads have exited: a barrier for all may now be complete.
  void threadsExited();
  unsigned liveThreads() const;
  /// Which copy has not been waited for.
  std::string pendingWords(std::uint32_t offset) const;

private:
  struct Barrier {
    std::uint32_t arrived = 0, count = 0;
    bool used = false;
    VectorClock clock;
  };
  struct Visit {
    std::uint32_t time = 0;
    unsigned line = 0;
  };
  void completeIfFull(unsigned id);
  void checkVisits() const;

  std::array<Barrier, 16> barriers;
  std::map<unsigned, Visit> visits; ///< the last one of each actor
};

class Cluster {
public:
  /// `first`: the block id of rank zero.
  Cluster(LaunchContext &launch, Dim3 first);

  /// To the end of all threads; throws Fault, and `faulting` then is the warp.
  void run();

  LaunchContext &launch;
  std::vector<std::unique_ptr<Block>> blocks;
  Warp *faulting = nullptr;
  std::uint64_t instructions() const;
  std::uint64_t threadInstructions() const;

  /// A new actor of asynchronous copies.
  unsigned copier() { return actors++; }
  /// barrier.cluster.arrive and .wait of the lanes that execute.
  void arrive(Warp &warp);
  void wait(Warp &warp);
  void threadsExited();
  /// Of Warp::reach, after the alignment; `lane` may be wholeWarp.
  Bytes reachShared(Warp &warp, std::uint64_t address, unsigned bytes, Access access, unsigned lane,
                    const void *values = nullptr);
  /// That has the shared address in its memory; it must have begun for sure, and not ended.
  Block &blockOf(Warp &warp, std::uint64_t address, unsigned lane);
  /// Of Warp::stopAt.
  static constexpr int clusterBarrier = 16;

private:
  [[noreturn]] void reportDeadlock();
  void completeIfFull();
  unsigned liveThreads() const;

  unsigned actors = 0;
  std::uint32_t arrived = 0;
  std::uint64_t phase = 0;
  VectorClock clock, open;
};

} // namespace kiln::ptx
